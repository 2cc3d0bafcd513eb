package examples_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// editor makes random changes of objects by their schema. Most results are valid; an API server refuses the others.
type editor struct{ r *rand.Rand }

// texts are values of strings: names, images, quantities, times, addresses, and what YAML or templates could take for
// something else.
var texts = []string{"a", "other", "b-2", "shop", "registry.example.com/other:2", "1.10", "0644", "yes", "null", "2Gi", "500m", "30s", "0 3 * * *",
	"example.com", "https://example.com/x", "10.1.0.0/16", "10.1.2.3", "view", "edit", "a: b", "{{ .x }}", "- x", " ", "", "ü", strings.Repeat("x", 70)}

// change returns a copy of value with one field set, changed or removed.
func (e *editor) change(value any, s *spec.Schema) any {
	value = runtime.DeepCopyJSONValue(value)
	switch have := value.(type) {
	case map[string]any:
		return e.changeMap(have, s)
	case []any:
		return e.changeList(have, s)
	}
	return e.make(s)
}

func (e *editor) changeMap(have map[string]any, s *spec.Schema) any {
	names := slices.Sorted(maps.Keys(s.Properties))
	if len(names) == 0 {
		names = append(slices.Sorted(maps.Keys(have)), "a", "key")
	}
	name := names[e.r.IntN(len(names))]
	field := fieldOf(s, name)
	old, isSet := have[name]
	switch n := e.r.IntN(5); {
	case isSet && n == 0:
		delete(have, name)
	case isSet && n > 1:
		have[name] = e.change(old, field)
	default:
		have[name] = e.make(field)
	}
	return have
}

func (e *editor) changeList(have []any, s *spec.Schema) any {
	item := itemOf(s)
	if len(have) == 0 {
		return append(have, e.make(item))
	}
	i := e.r.IntN(len(have))
	switch e.r.IntN(4) {
	case 0:
		return slices.Delete(have, i, i+1)
	case 1:
		return slices.Insert(have, i, e.make(item))
	case 2:
		have[0], have[i] = have[i], have[0]
	default:
		have[i] = e.change(have[i], item)
	}
	return have
}

// make makes a value: a small one, and an extreme one now and then.
func (e *editor) make(s *spec.Schema) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[e.r.IntN(len(s.Enum))]
	case s.Type.Contains("boolean"):
		return e.r.IntN(2) == 0
	case s.Type.Contains("integer"):
		return e.integer(s)
	case s.Type.Contains("number"):
		return []any{int64(0), 0.5, int64(3)}[e.r.IntN(3)]
	case s.Type.Contains("string"):
		return e.text(s)
	case s.Type.Contains("array"):
		list := []any{}
		for range e.r.IntN(3) {
			list = append(list, e.make(itemOf(s)))
		}
		return list
	case s.Type.Contains("object"):
		return e.object(s)
	}
	return []any{"x", int64(7), map[string]any{}, []any{}, map[string]any{"a": "b"}}[e.r.IntN(5)]
}

func (e *editor) object(s *spec.Schema) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) || e.r.IntN(3) == 0 {
			made[name] = e.make(fieldOf(s, name))
		}
	}
	if len(s.Properties) == 0 {
		for range e.r.IntN(3) {
			name := texts[e.r.IntN(len(texts))]
			made[name] = e.make(fieldOf(s, name))
		}
	}
	return made
}

func (e *editor) integer(s *spec.Schema) int64 {
	least, most := int64(0), int64(5)
	if s.Minimum != nil {
		least = int64(*s.Minimum)
		most = least + 5
	}
	if s.Maximum != nil {
		most = min(most, int64(*s.Maximum))
		if e.r.IntN(8) == 0 {
			return int64(*s.Maximum)
		}
	}
	return least + e.r.Int64N(max(most-least, 0)+1)
}

// text chooses a text that fits the pattern, if one does.
func (e *editor) text(s *spec.Schema) string {
	fitting := texts
	if pattern, err := regexp.Compile(s.Pattern); err == nil && s.Pattern != "" {
		fitting = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !pattern.MatchString(text) })
	}
	if len(fitting) == 0 {
		fitting = texts
	}
	return fitting[e.r.IntN(len(fitting))]
}

// anything is the schema of a value about which nothing is known.
var anything = &spec.Schema{}

func fieldOf(s *spec.Schema, name string) *spec.Schema {
	if field, ok := s.Properties[name]; ok {
		return &field
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema
	}
	return anything
}

func itemOf(s *spec.Schema) *spec.Schema {
	if s.Items == nil || s.Items.Schema == nil {
		return anything
	}
	return s.Items.Schema
}

// TestEditor: changes reach each field, do not touch what they are made from, and are the same for a seed.
func TestEditor(t *testing.T) {
	for _, e := range examples(t) {
		for _, p := range e.compile(t) {
			if p.Upstream.Schema == nil || !strings.HasSuffix(p.Upstream.GVK.Group, ".example.com") {
				continue
			}
			s := fieldOf(p.Upstream.Schema, "spec")
			reached := map[string]bool{}
			again := editor{rand.New(rand.NewPCG(1, 1))}
			for ed, i := (editor{rand.New(rand.NewPCG(1, 1))}), 0; i < 200*len(s.Properties); i++ {
				from := map[string]any{"kept": "x"}
				made, same := ed.change(from, s).(map[string]any), again.change(from, s)
				if len(from) != 1 || len(made) == 0 || !reflect.DeepEqual(any(made), same) {
					t.Fatalf("%s: %v became %v and %v", e.name(), from, made, same)
				}
				for name := range made {
					reached[name] = true
				}
			}
			for name := range s.Properties {
				if !reached[name] {
					t.Errorf("%s: %s is never set", e.name(), name)
				}
			}
		}
	}
}
