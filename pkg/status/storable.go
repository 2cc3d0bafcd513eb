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
	status *shape
	// nothing means that the kind has no status, anything that its schema allows any status.
	nothing, anything bool
}

// Probe reads the schema of a kind. If it is nil, everything is assumed to be storable, and conditions to be an atomic
// list, because a merge patch is right in any case.
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
	s.status = shapeOf(&status)
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
	keys := keysOf(s)
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
		next, ok := at.child(step.Field)
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
	case at.items == nil:
		return at.open
	}
	_, ok := at.items.child(field)
	return ok
}

// KeyedBy returns the key fields of the list at a path; none if the schema does not require them.
func (s *Storable) KeyedBy(path string) []string {
	at, _ := s.at(path)
	if at == nil {
		return nil
	}
	return at.keys
}

// shape is what is needed of a schema. Those of its parts have pointers: spec.Schema has properties as values, of a
// kilobyte each.
type shape struct {
	types             spec.StringOrArray
	keys              []string // of a list whose items have them; nil otherwise
	open              bool     // fields that it does not declare are stored
	properties        map[string]*shape
	items, additional *shape // nil for none
}

func shapeOf(s *spec.Schema) *shape {
	if s == nil {
		return nil
	}
	known := &shape{types: s.Type, keys: keysOf(s), open: keepsUnknown(s),
		properties: make(map[string]*shape, len(s.Properties))}
	for name, property := range s.Properties {
		known.properties[name] = shapeOf(&property)
	}
	if s.Items != nil {
		known.items = shapeOf(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		known.additional, known.open = shapeOf(s.AdditionalProperties.Schema), known.open || s.AdditionalProperties.Allows
	}
	return known
}

// keysOf are the key fields of a list.
func keysOf(s *spec.Schema) []string {
	if kind, _ := s.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		return nil
	}
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	return keys
}

// at returns the schema of the field at a path; nil if it has none, with open if it stores anything there.
func (s *Storable) at(path string) (at *shape, open bool) {
	parsed, err := fieldpath.Parse(path)
	if err != nil || s.status == nil || len(parsed) < 2 {
		return nil, s.anything
	}
	at = s.status
	for _, step := range parsed[1:] {
		next, ok := at.child(step.Field)
		if next == nil {
			return nil, ok // any value is allowed
		}
		at = next
	}
	return at, false
}

// child returns the schema of a field; nil with ok if any value is allowed.
func (s *shape) child(field string) (*shape, bool) {
	if p := s.properties[field]; p != nil {
		return p, true
	}
	if s.additional != nil {
		return s.additional, true
	}
	return nil, s.open
}

// Prune returns the part of a status (below .status) that the schema declares, and the sorted paths of the rest,
// without steps for list items. An apply of an undeclared field fails as a whole, and a merge patch drops it silently.
// It does not check values: see Fit.
func (s *Storable) Prune(status map[string]any) (stored map[string]any, dropped []string) {
	return s.cut(status, func(any, *shape) bool { return true })
}

// Fit is Prune that also drops values of another type than declared, which would make an apply or a patch fail as a
// whole, so that the conditions can be stored.
func (s *Storable) Fit(status map[string]any) (stored map[string]any, dropped []string) {
	return s.cut(status, fits)
}

func (s *Storable) cut(status map[string]any, fits func(any, *shape) bool) (stored map[string]any, dropped []string) {
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
	kept := c.cut(status, s.status, nil)
	stored, _ = kept.(map[string]any)
	sort.Strings(c.dropped)
	return stored, compact(c.dropped)
}

type cutter struct {
	fits    func(any, *shape) bool
	dropped []string
}

// step is a field on the way from the status to a value.
type step struct {
	above *step // nil in the status itself
	field string
}

// path is the way to a field, for a message.
func (s *step) path() fieldpath.Path {
	if s == nil {
		return fieldpath.MustParse(".status")
	}
	return s.above.path().Child(s.field)
}

func (c *cutter) cut(v any, s *shape, at *step) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			below := &step{at, key}
			next, ok := s.child(key)
			if !ok || !c.fits(value, next) {
				c.dropped = append(c.dropped, below.path().String())
				continue
			}
			out[key] = c.cut(value, next, below)
		}
		return out
	case []any:
		return c.items(v, s, at)
	}
	return v
}

func (c *cutter) items(list []any, s *shape, at *step) []any {
	if s.items == nil {
		return list
	}
	out := make([]any, 0, len(list))
	for _, item := range list {
		if !c.fits(item, s.items) {
			c.dropped = append(c.dropped, at.path().String())
			continue
		}
		out = append(out, c.cut(item, s.items, at))
	}
	return out
}

// fits reports whether a schema accepts the type of a value. A schema without a type accepts any.
func fits(v any, s *shape) bool {
	if s == nil || len(s.types) == 0 || v == nil {
		return true
	}
	switch v.(type) {
	case map[string]any:
		return s.types.Contains("object")
	case []any:
		return s.types.Contains("array")
	case string:
		return s.types.Contains("string")
	case bool:
		return s.types.Contains("boolean")
	case int64:
		return s.types.Contains("integer") || s.types.Contains("number")
	case float64:
		return s.types.Contains("number")
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
