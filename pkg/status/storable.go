package status

import (
	"sort"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// ConditionsShape is how a kind stores conditions.
type ConditionsShape string

// Ways to store conditions.
const (
	// ConditionsNone: the kind does not store conditions.
	ConditionsNone ConditionsShape = "None"
	// ConditionsAtomic: an atomic list, replaced as a whole by merge patch.
	ConditionsAtomic ConditionsShape = "Atomic"
	// ConditionsKeyed: a list keyed by type, so that several writers can apply theirs.
	ConditionsKeyed ConditionsShape = "Keyed"
)

// Storable is what a kind's schema can store of a status. It is immutable.
type Storable struct {
	Conditions ConditionsShape
	// MaxMessage limits the message of a condition, in bytes.
	MaxMessage int
	// status is the schema below .status; nil if it stores anything, or is unknown.
	status *spec.Schema
	// nothing means that the kind has no status, anything that its schema allows any status.
	nothing, anything bool
}

// Probe reads the schema of a kind. If it is nil, everything is assumed to be storable, and conditions to be an atomic list,
// because a merge patch is right in any case.
func Probe(schema *spec.Schema) *Storable {
	s := &Storable{Conditions: ConditionsAtomic, MaxMessage: maxConditionMessage}
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
			s.MaxMessage = int(min(*most, maxConditionMessage))
		}
	}
	return s
}

// maxConditionMessage is the limit of Kubernetes' own conditions.
const maxConditionMessage = 32768

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

// KeyedBy returns the key fields of the list at a path; none if the schema does not require them.
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

// at returns the schema of the field at a path; nil if it has none, with open if it stores anything there.
func (s *Storable) at(path string) (at *spec.Schema, open bool) {
	parsed, err := fieldpath.Parse(path)
	if err != nil || s.status == nil || len(parsed) < 2 {
		return nil, s.anything
	}
	at = s.status
	for _, step := range parsed[1:] {
		next, ok := child(at, step.Field)
		if next == nil {
			return nil, ok // any value is allowed
		}
		at = next
	}
	return at, false
}

// child returns the schema of a field; nil with ok if any value is allowed.
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

// Prune returns the part of a status (below .status) that the schema declares, and the sorted paths of the rest, without steps
// for list items. An apply of an undeclared field fails as a whole, and a merge patch drops it silently. It does not check
// values: see Fit.
func (s *Storable) Prune(status map[string]any) (stored map[string]any, dropped []string) {
	return s.cut(status, func(any, *spec.Schema) bool { return true })
}

// Fit is Prune that also drops values of another type than declared, which would make an apply or a patch fail as a whole, so
// that the conditions can be stored.
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

// fits reports whether a schema accepts the type of a value. A schema without a type accepts any.
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

// compact removes repeated paths: each item of a list may lack the same fields.
func compact(sorted []string) []string {
	var out []string
	for i, path := range sorted {
		if i == 0 || path != sorted[i-1] {
			out = append(out, path)
		}
	}
	return out
}
