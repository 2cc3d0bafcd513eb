package rules

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/corollary-dev/corollary/internal/golden"
)

// policy is the dialect of an admission policy.
var policy = Dialect{Self: "object", Plain: true, Params: "variables"}

func translator(t testing.TB, env *Env, d Dialect) *Translator {
	t.Helper()
	made, err := env.Translator(d)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestTranslate tests translations for an admission policy, for its message, which stays blank if it is, and for a
// CustomResourceDefinition: there self stays, and params become literals.
func TestTranslate(t *testing.T) {
	all := envs(t)
	definition := translator(t, all["typed"], Dialect{Self: "self", Values: map[string]any{"max": int64(20), "registry": "example.com",
		"ratio": 0.5, "deep": map[string]any{"log-level": "info"}, "zones": []any{"a", int64(1)}, "none": nil}})
	message := translator(t, all["untyped"], policy)
	translations := map[string]func(expr string) (string, error){
		"typed": translator(t, all["typed"], policy).Bool, "untyped": translator(t, all["untyped"], policy).Bool, "definition": definition.Bool,
		"message": func(expr string) (string, error) { return message.Message(expr, "spec: ") }}
	golden.Table(t, "testdata/translate.txt", func(t *testing.T, input string) string {
		kind, expr, _ := strings.Cut(input, ": ")
		text, err := translations[kind](expr)
		var without *UntranslatableError
		if errors.As(err, &without) {
			return "untranslatable: " + err.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
}

func TestLiteral(t *testing.T) {
	got, err := Literal(map[string]any{"b": []any{int64(1), "x", nil}, "f": []any{"x", "y"}, "a": map[string]any{"c": 1.0, "d": true},
		"e": `"\` + "\n"})
	const want = `dyn({"a": dyn({"c": dyn(1.0), "d": dyn(true)}), "b": dyn([dyn(1), dyn("x"), dyn(null)]), "e": dyn("\"\\\n"), "f": dyn(["x", "y"])})`
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// TestEveryMacroIsKnown fails if a new version of Kubernetes has another macro.
func TestEveryMacroIsKnown(t *testing.T) {
	env, err := NewEnv(EnvOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := env.scope(Upstream, "")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"has": true, "optMap": true, "optFlatMap": true}
	for name := range iterationMacros {
		known[name] = true
	}
	for _, macro := range s.env.Macros() {
		if !known[macro.Function()] {
			t.Errorf("the macro %s is not known", macro.Function())
		}
	}
}

// asJSON makes CEL values as an admission policy does, in the order of keys.
type asJSON struct{}

// NativeToValue implements types.Adapter.
func (asJSON) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return newSortedMap(asJSON{}, v)
	case []any:
		return types.NewDynamicList(asJSON{}, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// checkTranslation checks that an expression and its translation give the same result, or both an error.
func checkTranslation(t *testing.T, env *Env, made *Translator, expr string, object map[string]any) {
	t.Helper()
	p, err := env.Any(expr, Upstream, "")
	if err != nil {
		return
	}
	text, err := made.write(expr, wantAny)
	var without *UntranslatableError
	if errors.As(err, &without) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	compiled, issues := made.target.Compile(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := made.target.Program(compiled, cel.CostLimit(CostPerCall))
	if err != nil {
		t.Fatal(err)
	}
	var want any
	val, wantErr := p.run(&Vars{Self: object}, nil)
	if wantErr == nil {
		want, wantErr = toJSON(val)
	}
	var got any
	val, _, gotErr := program.Eval(map[string]any{"object": asJSON{}.NativeToValue(object)})
	if gotErr == nil {
		got, gotErr = toJSON(val)
	}
	if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngives %v, %v\n%s\ngives %v, %v\nof %v", expr, want, wantErr, text, got, gotErr, object)
	}
}

// TestTranslationsMeanTheSame tests random expressions with random objects.
func TestTranslationsMeanTheSame(t *testing.T) {
	env, err := NewEnv(EnvOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := translator(t, env, policy)
	for seed := range 300 {
		source := rand.New(rand.NewPCG(uint64(seed), 3))
		w := &writer{pick: source.IntN}
		checkTranslation(t, env, made, w.expr(3), w.object(3))
	}
}

func FuzzTranslate(f *testing.F) {
	addRandom(f, 4)
	env, err := NewEnv(EnvOptions{})
	if err != nil {
		f.Fatal(err)
	}
	made := translator(f, env, policy)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &writer{pick: func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b) % n
		}}
		expr := w.expr(4)
		checkTranslation(t, env, made, expr, w.object(3))
	})
}
