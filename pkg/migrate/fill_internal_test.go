package migrate

import (
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestFills: an expression of another type than the field is an error, whether or not an object lacks the field. So is
// a second value for a field: which one an object gets must not depend on their order.
func TestFills(t *testing.T) {
	t.Parallel()
	of := func(kind string) structuralschema.Structural {
		return structuralschema.Structural{Generic: structuralschema.Generic{Type: kind}}
	}
	spec, s := of("object"), of("object")
	spec.Properties = map[string]structuralschema.Structural{"any": {Extensions: structuralschema.Extensions{XIntOrString: true}}}
	for _, kind := range []string{"integer", "number", "string", "boolean"} {
		spec.Properties[kind] = of(kind)
	}
	s.Properties = map[string]structuralschema.Structural{"spec": spec}
	v := &kinds.Version{Name: "v1", Structural: &s, Schema: kinds.OpenAPI(&s)}
	const integer = `.spec.integer=1`
	for text, problem := range map[string]string{
		`.spec.integer="x"`:                      "the expression makes a value of type string, and .spec.integer is of type integer",
		`.spec.string=1`:                         "the expression makes a value of type integer, and .spec.string is of type string",
		`.spec.boolean="true"`:                   "of type string, and .spec.boolean is of type boolean",
		`.spec.string=self.spec.integer`:         "of type integer, and .spec.string",
		integer + ` .spec.integer=2`:             `--fill .spec.integer=2: another --fill sets .spec.integer: remove one of them`,
		integer + ` .spec['integer']=2`:          "another --fill sets .spec.integer",
		integer + ` .spec.string="x"`:            "",
		`.spec.number=1`:                         "",
		`.spec.number=1.5`:                       "",
		`.spec.integer=2.0`:                      "",
		`.spec.any=1`:                            "",
		`.spec.any="x"`:                          "",
		`.spec.string=string(self.spec.integer)`: "",
	} {
		_, err := fills(strings.Fields(text), v)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}
