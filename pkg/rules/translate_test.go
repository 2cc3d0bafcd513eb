package rules_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/translate"
)

// policy is the dialect of an admission policy.
var policy = translate.Dialect{Self: "object", Plain: true, Params: "variables"}

func translator(t testing.TB, env *rules.Env, d translate.Dialect) *translate.Translator {
	t.Helper()
	made := must.Get(translate.New(env, d)).In(t)
	return made
}

// TestTranslate tests translations for an admission policy, for its message, which stays blank if it is, and for a
// CustomResourceDefinition: there self stays, and params become literals.
func TestTranslate(t *testing.T) {
	all := rules.Envs(t)
	definition := translator(t, all["typed"], translate.Dialect{Self: "self", Values: map[string]any{"max": int64(20),
		"registry": "example.com",
		"ratio":    0.5, "deep": map[string]any{"log-level": "info"}, "zones": []any{"a", int64(1)}, "none": nil}})
	message := translator(t, all["untyped"], policy)
	translations := map[string]func(expr string) (string, error){
		"typed": translator(t, all["typed"], policy).Bool, "untyped": translator(t, all["untyped"], policy).Bool, "definition": definition.Bool,
		"message": func(expr string) (string, error) { return message.Message(expr, "spec: ") }}
	golden.Table(t, "testdata/translate.txt", func(t *testing.T, input string) string {
		kind, expr, _ := strings.Cut(input, ": ")
		text, err := translations[kind](expr)
		var without *translate.UntranslatableError
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
	got, err := translate.Literal(map[string]any{"b": []any{int64(1), "x", nil}, "f": []any{"x", "y"},
		"a": map[string]any{"c": 1.0, "d": true},
		"e": `"\` + "\n"})
	const want = `dyn({"a": dyn({"c": dyn(1.0), "d": dyn(true)}), "b": dyn([dyn(1), dyn("x"), dyn(null)]), "e": dyn("\"\\\n"), "f": dyn(["x", "y"])})`
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// asJSON makes CEL values as an admission policy does, in the order of keys.
type asJSON struct{}

// NativeToValue implements types.Adapter.
func (asJSON) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return inOrder{types.NewStringInterfaceMap(asJSON{}, v), slices.Sorted(maps.Keys(v))}
	case []any:
		return types.NewDynamicList(asJSON{}, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// inOrder is a map that is iterated in the order of its keys.
type inOrder struct {
	traits.Mapper
	keys []string
}

// Iterator implements traits.Iterable.
func (m inOrder) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, m.keys).Iterator()
}

// ConvertToType implements ref.Val.
func (m inOrder) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return m
	}
	return m.Mapper.ConvertToType(t)
}

// checkTranslation checks that an expression and its translation give the same result, or both an error.
func checkTranslation(t *testing.T, env *rules.Env, made *translate.Translator, expr string, object map[string]any) {
	t.Helper()
	p, err := env.Any(expr, rules.Upstream, "")
	if err != nil {
		return
	}
	text, err := made.Any(expr)
	var without *translate.UntranslatableError
	if errors.As(err, &without) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	target, err := env.Base().Extend(cel.Variable("object", cel.DynType), cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	compiled, issues := target.Compile(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program := must.Get(target.Program(compiled, cel.CostLimit(rules.CostPerCall))).In(t)
	want, wantErr := p.Eval(rules.Vars{Self: object}, nil)
	var got any
	val, _, gotErr := program.Eval(map[string]any{"object": asJSON{}.NativeToValue(object)})
	if gotErr == nil {
		got, gotErr = rules.ToJSON(val)
	}
	if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngives %v, %v\n%s\ngives %v, %v\nof %v", expr, want, wantErr, text, got, gotErr, object)
	}
}

// TestTranslationsMeanTheSame tests random expressions with random objects.
func TestTranslationsMeanTheSame(t *testing.T) {
	env := must.Get(rules.NewEnv(rules.EnvOptions{})).In(t)
	made := translator(t, env, policy)
	for seed := range 300 {
		source := rand.New(rand.NewPCG(uint64(seed), 3))
		expr, object := rules.Random(source.IntN)
		checkTranslation(t, env, made, expr(3), object(3))
	}
}

func FuzzTranslate(f *testing.F) {
	rules.AddRandom(f, 4)
	env := must.Get(rules.NewEnv(rules.EnvOptions{})).In(f)
	made := translator(f, env, policy)
	f.Fuzz(func(t *testing.T, data []byte) {
		writeExpr, object := rules.Random(func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b) % n
		})
		expr := writeExpr(4)
		checkTranslation(t, env, made, expr, object(3))
	})
}
