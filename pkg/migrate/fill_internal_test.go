package migrate

import (
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestFillTypes: an expression of another type than the field is an error, whether or not an object lacks the field.
func TestFillTypes(t *testing.T) {
	t.Parallel()
	of := func(kind string) structuralschema.Structural {
		return structuralschema.Structural{Generic: structuralschema.Generic{Type: kind}}
	}
	spec := of("object")
	spec.Properties = map[string]structuralschema.Structural{}
	for _, kind := range []string{"integer", "number", "string", "boolean"} {
		spec.Properties[kind] = of(kind)
	}
	spec.Properties["any"] = structuralschema.Structural{Extensions: structuralschema.Extensions{XIntOrString: true}}
	s := of("object")
	s.Properties = map[string]structuralschema.Structural{"spec": spec}
	v := &kinds.Version{Name: "v1", Structural: &s, Schema: kinds.OpenAPI(&s)}
	for text, problem := range map[string]string{
		`.spec.integer="x"`:              "the expression makes a value of type string, and .spec.integer is of type integer",
		`.spec.string=1`:                 "the expression makes a value of type integer, and .spec.string is of type string",
		`.spec.boolean="true"`:           "of type string, and .spec.boolean is of type boolean",
		`.spec.string=self.spec.integer`: "of type integer, and .spec.string",
		`.spec.integer=1`:                "", `.spec.number=1`: "", `.spec.number=1.5`: "", `.spec.integer=2.0`: "", `.spec.string="x"`: "", `.spec.any=1`: "",
		`.spec.any="x"`: "", `.spec.string=string(self.spec.integer)`: "",
	} {
		_, err := fills([]string{text}, v)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}

// TestFillTwice: which of two values an object gets must not depend on their order.
func TestFillTwice(t *testing.T) {
	t.Parallel()
	spec := structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"}, Properties: map[string]structuralschema.Structural{
		"a": {Generic: structuralschema.Generic{Type: "string"}}, "b": {Generic: structuralschema.Generic{Type: "string"}},
	}}
	s := structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"},
		Properties: map[string]structuralschema.Structural{"spec": spec}}
	v := &kinds.Version{Name: "v1", Structural: &s, Schema: kinds.OpenAPI(&s)}
	for second, problem := range map[string]string{
		`.spec.b="x"`:    "",
		`.spec.a="y"`:    `--fill .spec.a="y": another --fill sets .spec.a: remove one of them`,
		`.spec['a']="x"`: "another --fill sets .spec.a",
	} {
		_, err := fills([]string{`.spec.a="x"`, second}, v)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", second, err, problem)
		}
	}
}
