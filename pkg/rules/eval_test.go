package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// envs returns an Env with the schema in testdata and one without.
func envs(t testing.TB) map[string]*Env {
	t.Helper()
	schema := testSchema(t)
	known, err := NewEnv(EnvOptions{Self: schema, Downstreams: map[string]*spec.Schema{"deployment": schema, "web-server": nil}})
	if err != nil {
		t.Fatal(err)
	}
	none := must.Get(NewEnv(EnvOptions{Downstreams: map[string]*spec.Schema{"deployment": nil, "web-server": nil}})).In(t)
	return map[string]*Env{"typed": known, "untyped": none}
}

// TestEval runs the expressions in testdata/eval.txt: "both" has the same result with and without a schema.
func TestEval(t *testing.T) {
	all := envs(t)
	golden.Table(t, "testdata/eval.txt", func(t *testing.T, input string) string {
		kind, expr, _ := strings.Cut(input, ": ")
		if kind != "both" {
			return evaluated(t, all[kind], expr)
		}
		return inBoth(all, func(env *Env) string { return evaluated(t, env, expr) })
	})
}

// evaluated is the result of an expression about testObject, with its type, or an error.
func evaluated(t *testing.T, env *Env, expr string) string {
	t.Helper()
	p := must.Get(env.Any(expr, Upstream, "")).In(t)
	vars := evalVars()
	got, err := p.Eval(vars, nil)
	if err != nil {
		return "error: " + err.Error()
	}
	must.Same(t, testObject(), vars.Self, "the object was changed")
	if got == nil {
		return "null"
	}
	return fmt.Sprintf("%T %#v", got, got)
}

func evalVars() Vars {
	return Vars{Self: testObject(), Params: map[string]any{"registry": "registry.example.com", "limits": map[string]any{"max": 3}},
		Inputs: map[string]any{"settings": map[string]any{"data": map[string]any{"key": "value"}}}}
}

// TestEvalJSON: maps and lists have the types of JSON, at any depth.
func TestEvalJSON(t *testing.T) {
	for _, tc := range []struct {
		reason, expr string
		want         any
	}{
		{"an object is its JSON", "self.spec.template", testObject()["spec"].(map[string]any)["template"]},
		{"a list is its JSON", "self.spec.zones", []any{"a", "b"}},
		{"one that is made here too", "[{'a': [self.spec.replicas]}]", []any{map[string]any{"a": []any{int64(3)}}}},
		{"also numbers as a parser gives them", "params.limits", map[string]any{"max": int64(3)}},
	} {
		for kind, env := range envs(t) {
			p := must.Get(env.Any(tc.expr, Upstream, "")).In(t)
			got, err := p.Eval(evalVars(), nil)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v: %s", tc.reason, kind, err, diff)
			}
		}
	}
}

func TestEvalDownstreams(t *testing.T) {
	down := testObject()
	for kind, env := range envs(t) {
		for _, tc := range []struct {
			reason string
			expr   string
			scope  Scope
			name   string
			vars   Vars
			want   any
		}{
			{"the downstream's status", "downstream.status.availableReplicas", Downstream, "deployment", Vars{Downstream: down}, int64(2)},
			{"beside the upstream", "downstream.spec.replicas == self.spec.replicas", Downstream, "deployment", Vars{Self: down, Downstream: down},
				true},
			{"one without a schema", "downstream.anything.?there.orValue(1)", Downstream, "web-server",
				Vars{Downstream: map[string]any{"anything": map[string]any{}}}, int64(1)},
			{"all of them by name", "downstreams.deployment.status.availableReplicas", Status, "",
				Vars{Downstreams: map[string]any{"deployment": down}}, int64(2)},
			{"a name that is no identifier is escaped", "downstreams.web__dash__server.a", Status, "",
				Vars{Downstreams: map[string]any{"web-server": map[string]any{"a": "b"}}}, "b"},
			{"an absent one is absent", "has(downstreams.deployment)", Status, "", Vars{}, false},
			{"an empty one has no fields", "downstreams.deployment.?status.?availableReplicas.orValue(0)", Status, "",
				Vars{Downstreams: map[string]any{"deployment": map[string]any{}}}, int64(0)},
			{"absent, told optionally", "downstreams.?deployment.?status.?availableReplicas.orValue(0)", Status, "", Vars{}, int64(0)},
		} {
			t.Run(tc.reason+"/"+kind, func(t *testing.T) {
				p := must.Get(env.Any(tc.expr, tc.scope, tc.name)).In(t)
				got := must.Get(p.Eval(tc.vars, nil)).In(t)
				must.Same(t, tc.want, got, tc.expr)
			})
		}
	}
}

// big makes evaluations expensive.
func big() map[string]any {
	list := make([]any, 2000)
	for i := range list {
		list[i] = int64(i)
	}
	return map[string]any{"spec": map[string]any{"list": list, "text": strings.Repeat("a", 100_000)}}
}

// long iterates over the list for each of its items. expensive also searches a text, which has a high cost and takes no
// time: with loops alone it would take seconds to reach the limit, a minute with the race detector. TestBudget checks
// the cost of loops.
const (
	long      = "self.spec.list.all(a, self.spec.list.all(b, a + b >= 0))"
	expensive = "self.spec.list.all(a, self.spec.list.all(b, !self.spec.text.contains('b')))"
)

func TestEvalErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	spent := NewBudget(context.Background())
	spent.left = 3
	env := envs(t)["untyped"]
	for _, tc := range []struct {
		reason string
		expr   string
		self   map[string]any
		budget *Budget
		cause  Cause
		is     error
		want   string
	}{
		{"a missing field", "self.spec.tag != ''", map[string]any{"spec": map[string]any{}}, nil, CauseValue, nil,
			`evaluating "self.spec.tag != ''": no such key: tag`},
		{"a missing object", "self.spec.tag != ''", nil, nil, CauseValue, nil, `no such key: spec`},
		{"a value of another type", "self.spec > 1", map[string]any{"spec": "x"}, nil, CauseValue, nil, "values of types that it does not take"},
		{"a result of another type", "self.spec", map[string]any{"spec": "x"}, nil, CauseValue, nil, "the result is a string, not a bool"},
		{"a result that is null", "self.spec", map[string]any{"spec": nil}, nil, CauseValue, nil, "the result is a null, not a bool"},
		{"an index beyond the end", "self.spec[3]", map[string]any{"spec": []any{}}, nil, CauseValue, nil, "index out of bounds: 3"},
		{"a division by zero", "1 / self.spec == 1", map[string]any{"spec": int64(0)}, nil, CauseValue, nil, "division by zero"},
		{"an overflow", "self.spec + 1 > 0", map[string]any{"spec": int64(1<<63 - 1)}, nil, CauseValue, nil, "overflow"},
		{"too expensive", expensive, big(), nil, CauseCost, nil, "it costs more than the limit of 1000000"},
		{"too expensive together", "self.spec.list.all(a, a >= 0)", big(), spent, CauseCost, nil, "cost more than they may together"},
		{"the context is done", long, big(), NewBudget(canceled), CauseInterrupted, context.Canceled, "interrupted"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p, err := env.Bool(tc.expr, Upstream, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Eval(Vars{Self: tc.self}, tc.budget)
			var failed *EvalError
			if !errors.As(err, &failed) {
				t.Fatalf("got %v, want an *EvalError", err)
			}
			if failed.Cause != tc.cause || !strings.Contains(failed.Error(), tc.want) || strings.Contains(failed.Problem, "\n") {
				t.Errorf("got %q of cause %d, want %q of cause %d", failed, failed.Cause, tc.want, tc.cause)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v is not %v", err, tc.is)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	p := must.Get(envs(t)["untyped"].Bool("self.spec.list.all(a, a >= 0)", Upstream, "")).In(t)
	b := NewBudget(context.Background())
	must.Get(p.Eval(Vars{Self: big()}, b)).In(t)
	if b.Left() >= CostPerObject || b.Left() == 0 {
		t.Errorf("%d of %d left after one evaluation", b.Left(), CostPerObject)
	}
}

func TestConstant(t *testing.T) {
	env := envs(t)["typed"]
	for _, tc := range []struct {
		reason, expr string
		want, ok     bool
	}{
		{"a literal", "true", true, true},
		{"one with spaces", " false ", false, true},
		{"computed", "[1, 2].exists(x, x == 2)", true, true},
		{"a variable", "self.spec.enabled", false, false},
		{"a variable of no consequence", "self.spec.enabled || true", false, false},
		{"a parameter", "params.x", false, false},
		{"an error", "1 / 0 == 1", false, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := must.Get(env.Bool(tc.expr, Upstream, "")).In(t)
			got, ok := p.Constant()
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%s is constant: %v (%v), want %v (%v)", tc.expr, ok, got, tc.ok, tc.want)
			}
			if ok {
				if v, err := p.Eval(Vars{}, nil); err != nil || v != got {
					t.Errorf("evaluated: %v, %v", v, err)
				}
			}
		})
	}
}

// TestVersion: functions that the cluster's version does not have are unknown.
func TestVersion(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		version *version.Version
		expr    string
		ok      bool
	}{
		{"the newest by default", nil, "isSemver('1.0.0')", true},
		{"older than the function", version.MajorMinor(1, 31), "isSemver('1.0.0')", false},
		{"as old as the function", version.MajorMinor(1, 33), "isSemver('1.0.0')", true},
		{"a patch version", version.MustParseGeneric("v1.36.3"), "isSemver('1.0.0')", true},
		{"newer than this build", version.MajorMinor(1, 99), "isSemver('1.0.0')", true},
		{"optional fields are always there", version.MajorMinor(1, 20), "self.?spec.hasValue()", true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			env, err := NewEnv(EnvOptions{Version: tc.version})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = env.Bool(tc.expr, Upstream, ""); (err == nil) != tc.ok {
				t.Errorf("got %v, want it to compile: %v", err, tc.ok)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	env := envs(t)["typed"]
	p := must.Get(env.Bool("self.spec.env.all(e, e.name != '') && self.spec.image > 'a'", Upstream, "")).In(t)
	object := testObject()
	done := make(chan error)
	for range 4 {
		go func() {
			for range 50 {
				if _, err := env.Bool("self.spec.replicas > 1", Upstream, ""); err != nil {
					done <- err
					return
				}
				if _, err := p.Eval(Vars{Self: object}, nil); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
