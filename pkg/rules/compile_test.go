package rules

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// TestCompileErrors runs the archives in testdata/compile: each file "expr.N" has an expression, and "want.N" its error
// or "ok". The first line of the comment is "typed" or "untyped", then the scope, then the result type.
func TestCompileErrors(t *testing.T) {
	all := envs(t)
	golden.Cases(t, "testdata/compile/*.txtar", func(t *testing.T, c *golden.Case) {
		settings, _, _ := strings.Cut(string(c.Comment), "\n")
		compile := compiler(t, all, strings.Fields(settings))
		for i := 0; i+1 < len(c.Files); i += 2 {
			expr, want := c.Files[i], c.Files[i+1]
			got := "ok\n"
			if err := compile(strings.TrimSuffix(string(expr.Data), "\n")); err != nil {
				got = err.Error() + "\n"
			}
			c.Want(t, want.Name, got)
		}
	})
}

// compiler returns the function that the settings of an archive name.
func compiler(t *testing.T, all map[string]*Env, settings []string) func(string) error {
	t.Helper()
	if len(settings) != 3 || all[settings[0]] == nil {
		t.Fatalf("settings %q", settings)
	}
	env := all[settings[0]]
	scope := map[string]Scope{"upstream": Upstream, "downstream": Downstream, "status": Status}[settings[1]]
	compile := map[string]func(string, Scope, string) (*Program, error){"bool": env.Bool, "string": env.String, "any": env.Any}[settings[2]]
	return func(expr string) error {
		_, err := compile(expr, scope, "deployment")
		var problem *CompileError
		if err != nil && (!errors.As(err, &problem) || strings.Contains(problem.Problem, "\n") || problem.Line < 1 || problem.Column < 1) {
			t.Errorf("%s: %#v is no CompileError of one line with a position", expr, err)
		}
		return err
	}
}

// TestSchemas: which schemas are accepted, and whether a field in them is known.
func TestSchemas(t *testing.T) {
	object := func(properties map[string]spec.Schema) *spec.Schema {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	str := *spec.StringProperty()
	open := &spec.SchemaOrBool{Allows: true}
	for _, tc := range []struct {
		reason string
		schema *spec.Schema
		expr   string
		ok     bool
	}{
		{"no schema: anything may be there", nil, "self.foo", true},
		{"an object without properties says nothing", object(nil), "self.foo", true},
		{"a root with properties is closed", object(map[string]spec.Schema{"a": str}), "self.foo", false},
		{"but has metadata", object(map[string]spec.Schema{"a": str}), "self.metadata.name == 'x' && self.kind != ''", true},
		{"managedFields are not kept", object(map[string]spec.Schema{"a": str}), "has(self.metadata.managedFields)", false},
		{"additionalProperties: true is open",
			object(map[string]spec.Schema{"m": {SchemaProps: spec.SchemaProps{Type: []string{"object"}, AdditionalProperties: open}}}),
			"self.m.foo.bar", true},
		{"an array without items is open", object(map[string]spec.Schema{"l": {SchemaProps: spec.SchemaProps{Type: []string{"array"}}}}),
			"self.l[0].foo", true},
		{"a field without a type, as a quantity is, is open", object(map[string]spec.Schema{"q": {}}),
			"self.q == '1' && quantity(self.q) == quantity('1')", true},
		{"a field that no identifier can name is left out", object(map[string]spec.Schema{"$ref": str, "a": str}), "self.a == ''", true},
		{"a built-in int-or-string is known by its format",
			object(map[string]spec.Schema{"p": {SchemaProps: spec.SchemaProps{Type: []string{"string"}, Format: "int-or-string"}}}), "self.p == 1",
			true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			env := must.Get(NewEnv(EnvOptions{Self: tc.schema})).In(t)
			if _, err := env.Any(tc.expr, Upstream, ""); (err == nil) != tc.ok {
				t.Errorf("%s: got %v, want it to compile: %v", tc.expr, err, tc.ok)
			}
		})
	}
}
