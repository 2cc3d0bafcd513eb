package status

import (
	"sort"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// ConditionsShape is how a kind stores conditions.
type ConditionsShape string

// The shapes.
const (
	// ConditionsNone: it does not.
	ConditionsNone ConditionsShape = "None"
	// ConditionsAtomic: as a list that is replaced whole, by merge patch.
	ConditionsAtomic ConditionsShape = "Atomic"
	// ConditionsKeyed: as a list keyed by type, so that several writers can apply theirs.
	ConditionsKeyed ConditionsShape = "Keyed"
)

// Storable is what a kind's schema can store of a status. It is immutable.
type Storable struct {
	Conditions ConditionsShape
	// status is the schema below .status; nil where anything is stored, or nothing is known.
	status *spec.Schema
	// nothing is true where the kind has no status at all.
	nothing bool
}

// Probe reads a kind's schema. Without one nothing is known: then everything is tried, and conditions are taken for an
// atomic list, which a merge patch writes rightly in any case.
func Probe(schema *spec.Schema) *Storable {
	if schema == nil || len(schema.Properties) == 0 && keepsUnknown(schema) {
		return &Storable{Conditions: ConditionsAtomic}
	}
	status, ok := schema.Properties["status"]
	if !ok {
		if keepsUnknown(schema) {
			return &Storable{Conditions: ConditionsAtomic}
		}
		return &Storable{Conditions: ConditionsNone, nothing: true}
	}
	s := &Storable{Conditions: ConditionsNone, status: &status}
	conditions, ok := status.Properties["conditions"]
	switch {
	case ok && keyedByType(&conditions):
		s.Conditions = ConditionsKeyed
	case ok && conditions.Type.Contains("array"), !ok && keepsUnknown(&status):
		s.Conditions = ConditionsAtomic
	}
	return s
}

func keepsUnknown(s *spec.Schema) bool {
	keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	return keeps
}

func keyedByType(s *spec.Schema) bool {
	if kind, _ := s.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		return false
	}
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	return len(keys) == 1 && keys[0] == "type"
}

// Stores tells whether the field at a path such as .status.downstreams can be stored.
func (s *Storable) Stores(path string) bool {
	if s.nothing {
		return false
	}
	parsed, err := fieldpath.Parse(path)
	if err != nil || len(parsed) == 0 {
		return false
	}
	at := s.status
	for _, step := range parsed[1:] {
		if at == nil {
			return true
		}
		next, ok := child(at, step.Field)
		if !ok {
			return false
		}
		at = next
	}
	return true
}

// child is the schema of a field; nil with ok where anything goes.
func child(s *spec.Schema, field string) (*spec.Schema, bool) {
	if p, ok := s.Properties[field]; ok {
		return &p, true
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema, true
	}
	if keepsUnknown(s) || (s.AdditionalProperties != nil && s.AdditionalProperties.Allows) {
		return nil, true
	}
	return nil, false
}

// Prune returns what of a status (the part below .status) can be stored, and the paths of what cannot: fields that the
// schema does not declare, or declares with another type. An apply of either fails as a whole; a merge patch drops the
// first without a word and fails for the second: so they are never sent. The paths are sorted; items of lists take no
// step in them.
func (s *Storable) Prune(status map[string]any) (stored map[string]any, dropped []string) {
	if s.nothing {
		for key := range status {
			dropped = append(dropped, ".status."+key)
		}
		sort.Strings(dropped)
		return nil, dropped
	}
	if s.status == nil {
		return status, nil
	}
	kept := prune(status, s.status, fieldpath.MustParse(".status"), &dropped)
	stored, _ = kept.(map[string]any)
	sort.Strings(dropped)
	return stored, compact(dropped)
}

func prune(v any, s *spec.Schema, at fieldpath.Path, dropped *[]string) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			path := append(at[:len(at):len(at)], fieldpath.Step{Kind: fieldpath.FieldStep, Field: key})
			next, ok := child(s, key)
			if !ok || !fits(value, next) {
				*dropped = append(*dropped, path.String())
				continue
			}
			out[key] = prune(value, next, path, dropped)
		}
		return out
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = prune(item, s.Items.Schema, at, dropped)
		}
		return out
	}
	return v
}

// fits reports whether a schema takes a value of this type. One without a type takes any.
func fits(v any, s *spec.Schema) bool {
	if s == nil || len(s.Type) == 0 || v == nil {
		return true
	}
	switch v.(type) {
	case map[string]any:
		return s.Type.Contains("object")
	case []any:
		return s.Type.Contains("array")
	case string:
		return s.Type.Contains("string")
	case bool:
		return s.Type.Contains("boolean")
	case int64:
		return s.Type.Contains("integer") || s.Type.Contains("number")
	case float64:
		return s.Type.Contains("number")
	default:
		return true
	}
}

// compact drops repeated paths: each item of a list lacks the same fields.
func compact(sorted []string) []string {
	var out []string
	for i, path := range sorted {
		if i == 0 || path != sorted[i-1] {
			out = append(out, path)
		}
	}
	return out
}
