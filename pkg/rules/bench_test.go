package rules

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

func BenchmarkEval(b *testing.B) {
	schema := testSchema(b)
	vars := Vars{Self: testObject()}
	for _, expr := range []struct{ name, text string }{
		{"simple", "self.spec.replicas <= 20"},
		{"optional", "self.spec.?replicas.orValue(1) <= 20"},
		{"labels", "self.metadata.labels['tools.example.com/app'] == 'web'"},
		{"all", "self.spec.env.all(e, e.name != '')"},
	} {
		for _, kind := range []struct {
			name string
			o    EnvOptions
		}{{"typed", EnvOptions{Self: schema}}, {"untyped", EnvOptions{}}} {
			b.Run(expr.name+"/"+kind.name, func(b *testing.B) {
				env := must.Get(NewEnv(kind.o)).In(b)
				p := must.Get(env.Bool(expr.text, Upstream, "")).In(b)
				b.ReportAllocs()
				for b.Loop() {
					if ok, err := p.Eval(vars, nil); err != nil || ok != true {
						b.Fatal(ok, err)
					}
				}
			})
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	env := must.Get(NewEnv(EnvOptions{Self: testSchema(b)})).In(b)
	v, errs := CompileValidation(env, []Validation{
		{Rule: "self.spec.?replicas.orValue(1) <= 20", Message: "at most 20 replicas"},
		{Rule: "self.spec.image.startsWith('registry.example.com/')"},
		{Rule: "!has(self.spec.env) || self.spec.env.all(e, e.name != '')"},
	})
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	vars := Vars{Self: testObject()}
	b.ReportAllocs()
	for b.Loop() {
		if failures := v.Validate(vars, nil); len(failures) > 0 {
			b.Fatal(failures)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	env := must.Get(NewEnv(EnvOptions{Self: testSchema(b)})).In(b)
	for b.Loop() {
		must.Get(env.Bool("self.spec.?replicas.orValue(1) <= 20", Upstream, "")).In(b)
	}
}
