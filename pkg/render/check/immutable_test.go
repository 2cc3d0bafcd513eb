package check

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestMayChange: which rules of a schema forbid a change of .spec.size.
func TestMayChange(t *testing.T) {
	for _, row := range []struct {
		reason, root, spec, size string
		want                     bool
	}{
		{"no rule", "", "", "", true},
		{"of the field", "", "", "self == oldSelf", false},
		{"the other way round", "", "", "oldSelf==self", false},
		{"of the spec as a whole", "", "self == oldSelf", "", false},
		{"of the spec, by name", "", "self.size == oldSelf.size", "", false},
		{"of the root, by name", "self.spec.size == oldSelf.spec.size", "", "", false},
		{"if it was there", "", "!has(oldSelf.size) || self.size == oldSelf.size", "", false},
		{"optional fields", "", "self.?size == oldSelf.?size", "", false},
		{"another field", "", "self.sizes == oldSelf.sizes", "", true},
		{"a field below", "", "self.size.x == oldSelf.size.x", "", true},
		{"no smaller", "", "", "self >= oldSelf", true},
		{"not about a change", "", "", "self != ''", true},
	} {
		with := func(s *spec.Schema, rule string) *spec.Schema {
			if rule != "" {
				s.AddExtension("x-kubernetes-validations", []any{map[string]any{"rule": rule}})
			}
			return s
		}
		object := func(name string, property *spec.Schema) *spec.Schema {
			return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{name: *property}}}
		}
		root := with(object("spec", with(object("size", with(spec.StringProperty(), row.size)), row.spec)), row.root)
		if got := mayChange([]string{"spec", "size"}, root); got != row.want {
			t.Errorf("%s: got %t, want %t", row.reason, got, row.want)
		}
	}
}
