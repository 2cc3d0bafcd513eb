package rules

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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

// TestTranslate tests translations for an admission policy.
func TestTranslate(t *testing.T) {
	all := envs(t)
	for _, tc := range []struct {
		reason string
		env    string
		expr   string
		want   string
	}{
		{"self is object", "untyped", "self.spec.replicas <= 20", `object.spec.replicas <= 20`},
		{"text is not touched", "untyped", "self.spec.a == 'self.params'", `object.spec.a == "self.params"`},
		{"nor are fields of that name", "untyped", "self.self.params == 1", `object.self.params == 1`},
		{"nor a macro's variable", "untyped", "self.l.all(self, self > 1) && self.x > 1", `object.l.all(self, self > 1) && object.x > 1`},
		{"a macro's variable does not hide object", "untyped", "self.l.all(object, object > self.min)",
			`object.l.all(object_, object_ > object.min)`},
		{"nor the other way round", "untyped", "self.l.all(object_, self.l.all(object, object > object_))",
			`object.l.all(object_, object.l.all(object__, object__ > object_))`},
		{"nor the params", "untyped", "self.l.all(variables, variables > params.min)",
			`object.l.all(variables_, variables_ > variables.params.min)`},
		{"self by its whole name", "untyped", ".self.x > 1", `object.x > 1`},
		{"has", "untyped", "has(self.a.b) && !has(self.c)", `has(object.a.b) && !has(object.c)`},
		{"has of an optional", "untyped", "has(self.?a.b)", `has(object.?a.b)`},
		{"optional syntax", "untyped", "self.?a[?'b'].orValue(3) > 1 && self.l[?0].hasValue()",
			`object.?a[?"b"].orValue(3) > 1 && object.l[?0].hasValue()`},
		{"optional macros", "untyped", "self.?a.optMap(self, self + 1).orValue(0) == 1", `object.?a.optMap(self, self + 1).orValue(0) == 1`},
		{"optFlatMap", "untyped", "self.?a.optFlatMap(x, x.?b).hasValue()", `object.?a.optFlatMap(x, x.?b).hasValue()`},
		{"optional.of, also within a macro", "untyped", "optional.of(self.a) == self.?b || [1].exists(i, optional.of(i) == optional.none())",
			`optional.of(object.a) == object.?b || [1].exists(i, optional.of(i) == optional.none())`},
		{"macros within macros", "untyped", "self.l.filter(x, x.m.exists(y, y == x.n)).map(z, z.p > 0, z.p).size() == 1",
			`object.l.filter(x, x.m.exists(y, y == x.n)).map(z, z.p > 0, z.p).size() == 1`},
		{"exists_one", "untyped", "self.l.exists_one(x, x == self.a)", `object.l.exists_one(x, x == object.a)`},
		{"two variables", "untyped", "self.m.all(k, v, k != 'a' || v == self.a)", `object.m.all(k, v, k != "a" || v == object.a)`},
		{"two variables and a filter", "untyped", "self.m.transformList(k, v, v > 0, k + self.a).size() == 1",
			`object.m.transformList(k, v, v > 0, k + object.a).size() == 1`},
		{"transformMapEntry", "untyped", "self.m.transformMapEntry(k, v, {string(v): k}).size() == 1",
			`object.m.transformMapEntry(k, v, {string(v): k}).size() == 1`},
		{"parentheses", "untyped", "(self.a + 1) * 2 == (self.b ? 1 : 2) && (self.c || self.d)",
			`(object.a + 1) * 2 == (object.b ? 1 : 2) && (object.c || object.d)`},
		{"chains", "untyped", "self.a || (self.b || self.c) && (self.d && self.e)", `object.a || (object.b || object.c) && object.d && object.e`},
		{"unicode and escapes", "untyped", `self.a == 'grün\n"\''`, `object.a == "grün\n\"'"`},
		{"functions", "untyped", "quantity(self.a).isLessThan(quantity('1Gi')) && sets.contains(self.l, ['a'])",
			`quantity(object.a).isLessThan(quantity("1Gi")) && sets.contains(object.l, ["a"])`},
		{"format", "untyped", "!format.dns1123Label().validate(self.a).hasValue()", `!format.dns1123Label().validate(object.a).hasValue()`},
		{"the type of the result is known", "untyped", "self.enabled", `object.enabled ? true : false`},
		{"types", "untyped", "type(self.a) == int", `type(object.a) == int`},
		{"an escaped name may be one of a field", "untyped", "self.foo__dash__bar > 1",
			`(object[?"foo__dash__bar"].hasValue() ? (object["foo__dash__bar"]) : (object["foo-bar"])) > 1`},
		{"or be there or not", "untyped", "has(self.a.foo__dash__bar)", `object.a[?"foo__dash__bar"].or(object.a[?"foo-bar"]).hasValue()`},
		{"an escaped key as well", "untyped", "self['a__dash__b'] == 1 || 'a__dash__b' in self.spec",
			`(object[?"a__dash__b"].hasValue() ? (object["a__dash__b"]) : (object["a-b"])) == 1 || "a__dash__b" in object.spec || "a-b" in object.spec`},
		{"sortBy", "untyped", "self.l.sortBy(x, x.a)[0].a == 1", `object.l.sortBy(x, x.a)[0].a == 1`},
		{"a known field is not escaped", "typed", "self.spec.node__dash__pool == 'a'", `object.spec["node-pool"] == "a"`},
		{"nor is one there or not", "typed", "has(self.spec.node__dash__pool)", `object.spec[?"node-pool"].hasValue()`},
		{"a word of CEL", "typed", "self.spec.__namespace__ == self.metadata.namespace", `object.spec["namespace"] == object.metadata.namespace`},
		{"a key of a map stays", "typed", "self.spec.labels.a__dash__b == 'a'", `object.spec.labels.a__dash__b == "a"`},
		{"a time is made of its text", "typed", "self.spec.since < timestamp('2030-01-01T00:00:00Z')",
			`timestamp(object.spec.since) < timestamp("2030-01-01T00:00:00Z")`},
		{"where it may be missing", "typed", "self.spec.?timeout.orValue(duration('1m')) > duration('2s')",
			`object.spec.?timeout.optMap(v, duration(v)).orValue(duration("1m")) > duration("2s")`},
		{"also below an optional", "typed", "self.?spec.timeout.orValue(duration('1m')) > duration('2s')",
			`object.?spec.timeout.optMap(v, duration(v)).orValue(duration("1m")) > duration("2s")`},
		{"a key that may be missing: what it has is of no type", "typed", "self.spec.labels[?'a'].optMap(a, int(a)).orValue(1) == 1",
			`object.spec.labels[?"a"].optMap(v, dyn(v)).optMap(a, int(a)).orValue(1) == 1`},
		{"as it is where no schema says more", "untyped", "self.labels[?'a'].optMap(a, int(a)).orValue(1) == 1",
			`object.labels[?"a"].optMap(a, int(a)).orValue(1) == 1`},
		{"an escaped name that may be missing", "typed", "self.spec.?node__dash__pool.optMap(p, int(p)).orValue(1) == 1",
			`object.spec[?"node-pool"].optMap(v, dyn(v)).optMap(p, int(p)).orValue(1) == 1`},
		{"a number is a double", "typed", "1.0 / self.spec.ratio < 2.0", `1.0 / double(object.spec.ratio) < 2.0`},
		{"null counts as absent", "typed", "!has(self.spec.tag) || self.spec.tag != 'latest'",
			`!object.spec[?"tag"].optFlatMap(v, (dyn(v) == null) ? optional.none() : optional.of(dyn(v))).hasValue() || ` +
				`object.spec[?"tag"].optFlatMap(v, (dyn(v) == null) ? optional.none() : optional.of(dyn(v))).value() != "latest"`},
		{"items of a list", "typed", "self.spec.env.all(e, has(e.value)) && self.spec.zones.exists(z, z == 'a')",
			`object.spec.env.all(e, has(e.value)) && object.spec.zones.exists(z, z == "a")`},
		{"in a set", "typed", "'a' in self.spec.zones", `"a" in object.spec.zones`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := translator(t, all[tc.env], policy).Bool(tc.expr)
			if err != nil || got != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

// TestUntranslatable tests expressions that cannot be translated, and their errors.
func TestUntranslatable(t *testing.T) {
	all := envs(t)
	for _, tc := range []struct{ reason, env, expr, want string }{
		{"inputs are not known at the door", "untyped", "inputs.settings.data.key == 'a'", "it reads inputs"},
		{"past a macro's variable", "untyped", "[1].all(self, self == .self.a)",
			"it names self past a macro's variable of that name: give that another one"},
		{"bytes", "typed", "self.spec.data == b'a'", "it reads a field of format byte, and base64 cannot be decoded there"},
		{"sets compare in any order", "typed", "self.spec.zones == self.spec.oldZones",
			"it uses the whole of a value to which its schema gives another meaning (a list whose order does not matter): name the fields that " +
				"matter"},
		{"the object as a whole", "typed", "self.spec == self.spec",
			"it uses the whole of a value to which its schema gives another meaning (a time, duration, fraction or bytes): name the fields that " +
				"matter"},
		{"what would read as something else", "untyped", "dyn(!self.a).b", ""},
		{"", "untyped", "(-self.a).b == 1", "it cannot be written out again without a change of its meaning: write it with less nesting"},
	} {
		t.Run(tc.expr, func(t *testing.T) {
			text, err := translator(t, all[tc.env], policy).Bool(tc.expr)
			var without *UntranslatableError
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.As(err, &without) || err.Error() != tc.want):
				t.Errorf("got  %s, %v\nwant %s", text, err, tc.want)
			}
		})
	}
}

// TestTranslateDefinition tests translations for a CustomResourceDefinition: self stays, params become literals.
func TestTranslateDefinition(t *testing.T) {
	env := envs(t)["typed"]
	made := translator(t, env, Dialect{Self: "self", Values: map[string]any{"max": int64(20), "registry": "example.com", "ratio": 0.5,
		"deep": map[string]any{"log-level": "info"}, "zones": []any{"a", int64(1)}, "none": nil}})
	for expr, want := range map[string]string{
		"self.spec.replicas <= params.max && self.spec.since < timestamp('2030-01-01T00:00:00Z')":                      `self.spec.replicas <= 20 && self.spec.since < timestamp("2030-01-01T00:00:00Z")`,
		"self.spec.image.startsWith(params.registry + '/') && self.spec.ratio > params['ratio']":                       `self.spec.image.startsWith("example.com" + "/") && self.spec.ratio > 0.5`,
		"has(params.max) && !has(params.min) && params.?min.orValue(1) < params.?max.orValue(2) && has(params.deep.x)": `true && !false && optional.none().orValue(1) < optional.of(20).orValue(2) && false`,
		"params.deep.log__dash__level == 'info' && 'a' in params.zones && params.none == null":                         `"info" == "info" && "a" in dyn([dyn("a"), dyn(1)]) && null == null`,
		"[1].all(params, params == self.spec.replicas)":                                                                `[1].all(params, params == self.spec.replicas)`,
		"self.spec.node__dash__pool == 'a' && has(self.spec.tag)":                                                      `self.spec.node__dash__pool == "a" && has(self.spec.tag)`,
	} {
		if got, err := made.Bool(expr); err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", expr, got, err, want)
		}
	}
}

// TestTranslateMessage: a blank message stays blank, so that the fixed one is used.
func TestTranslateMessage(t *testing.T) {
	made := translator(t, envs(t)["untyped"], policy)
	for expr, want := range map[string]string{
		"'at most ' + string(params.max) + ', not ' + string(self.x)": `"spec: at most " + string(variables.params.max) + ", not " + string(object.x)`,
		"'\\n at most'":      `"spec: at most"`,
		"self.message":       `optional.ofNonZeroValue(("" + object.message).trim()).optMap(m, "spec: " + m).orValue("")`,
		"' ' + self.message": `optional.ofNonZeroValue((" " + object.message).trim()).optMap(m, "spec: " + m).orValue("")`,
	} {
		if got, err := made.Message(expr, "spec: "); err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", expr, got, err, want)
		}
	}
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
