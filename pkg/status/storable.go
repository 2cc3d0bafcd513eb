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
	// MaxMessage is how many bytes the message of a condition may have.
	MaxMessage int
	// status is the schema below .status; nil if anything is stored, or nothing is known.
	status *spec.Schema
	// nothing is true if the kind has no status at all, anything if its schema leaves the status open.
	nothing, anything bool
}

// Probe reads a kind's schema. Without one nothing is known: then everything is tried, and conditions are taken for an
// atomic list, which a merge patch writes rightly in any case.
func Probe(schema *spec.Schema) *Storable {
	s := &Storable{Conditions: ConditionsAtomic, MaxMessage: longestMessage}
	if schema == nil {
		return s
	}
	status, ok := schema.Properties["status"]
	if !ok && keepsUnknown(schema) {
		s.anything = true
		return s
	}
	if s.Conditions = ConditionsNone; !ok {
		s.nothing = true
		return s
	}
	s.status = &status
	conditions, ok := status.Properties["conditions"]
	switch {
	case ok && keyedByType(&conditions):
		s.Conditions = ConditionsKeyed
	case ok && conditions.Type.Contains("array"), !ok && keepsUnknown(&status):
		s.Conditions = ConditionsAtomic
	}
	if ok && conditions.Items != nil && conditions.Items.Schema != nil {
		if most := conditions.Items.Schema.Properties["message"].MaxLength; most != nil {
			s.MaxMessage = int(min(*most, longestMessage))
		}
	}
	return s
}

// longestMessage is what Kubernetes' own conditions may have.
const longestMessage = 32768

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

// Stores reports whether the field at a path such as .status.downstreams can be stored.
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

// StoresItem reports whether items of the list at a path are known to store a field.
func (s *Storable) StoresItem(path, field string) bool {
	at, open := s.at(path)
	switch {
	case at == nil:
		return open
	case at.Items == nil || at.Items.Schema == nil:
		return keepsUnknown(at)
	}
	_, ok := child(at.Items.Schema, field)
	return ok
}

// KeyedBy are the fields that tell the items of the list at a path apart; none if the schema does not demand that they differ.
func (s *Storable) KeyedBy(path string) []string {
	at, _ := s.at(path)
	if at == nil {
		return nil
	}
	if kind, _ := at.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		return nil
	}
	keys, _ := at.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	return keys
}

// at is the schema of the field at a path; nil if it has none, with open if it stores anything there.
func (s *Storable) at(path string) (at *spec.Schema, open bool) {
	parsed, err := fieldpath.Parse(path)
	if err != nil || s.status == nil || len(parsed) < 2 {
		return nil, s.anything
	}
	at = s.status
	for _, step := range parsed[1:] {
		next, ok := child(at, step.Field)
		if next == nil {
			return nil, ok // where anything goes
		}
		at = next
	}
	return at, false
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

// Prune returns what of a status (the part below .status) the schema declares, and the paths of what it does not. An apply
// of an undeclared field fails as a whole, and a merge patch drops it without a word: so it is never sent. The paths are
// sorted; items of lists take no step in them. Values do not count: see Fit.
func (s *Storable) Prune(status map[string]any) (stored map[string]any, dropped []string) {
	return s.cut(status, func(any, *spec.Schema) bool { return true })
}

// Fit is Prune that drops values of another type than declared too, which would make an apply or a patch fail as a whole:
// the rest, conditions above all, can be stored without them.
func (s *Storable) Fit(status map[string]any) (stored map[string]any, dropped []string) {
	return s.cut(status, fits)
}

func (s *Storable) cut(status map[string]any, fits func(any, *spec.Schema) bool) (stored map[string]any, dropped []string) {
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
	c := cutter{fits: fits}
	kept := c.cut(status, s.status, fieldpath.MustParse(".status"))
	stored, _ = kept.(map[string]any)
	sort.Strings(c.dropped)
	return stored, compact(c.dropped)
}

type cutter struct {
	fits    func(any, *spec.Schema) bool
	dropped []string
}

func (c *cutter) cut(v any, s *spec.Schema, at fieldpath.Path) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			path := at.Child(key)
			next, ok := child(s, key)
			if !ok || !c.fits(value, next) {
				c.dropped = append(c.dropped, path.String())
				continue
			}
			out[key] = c.cut(value, next, path)
		}
		return out
	case []any:
		return c.items(v, s, at)
	}
	return v
}

func (c *cutter) items(list []any, s *spec.Schema, at fieldpath.Path) []any {
	if s.Items == nil || s.Items.Schema == nil {
		return list
	}
	out := make([]any, 0, len(list))
	for _, item := range list {
		if !c.fits(item, s.Items.Schema) {
			c.dropped = append(c.dropped, at.String())
			continue
		}
		out = append(out, c.cut(item, s.Items.Schema, at))
	}
	return out
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
