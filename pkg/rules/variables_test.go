package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/rules"
)

func schemaOf(properties map[string]spec.Schema) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
}

// declared returns an environment with variables; a spec has a name, a count, a time and workers.
func declared(t *testing.T, variables ...[2]string) *rules.Env {
	t.Helper()
	worker := schemaOf(map[string]spec.Schema{"name": *spec.StringProperty()})
	at := *spec.StringProperty()
	at.Format = "date-time"
	fields := schemaOf(map[string]spec.Schema{"name": *spec.StringProperty(), "count": *spec.Int64Property(), "at": at,
		"workers": *spec.ArrayProperty(worker)})
	env, err := rules.NewEnv(rules.EnvOptions{Self: schemaOf(map[string]spec.Schema{"spec": *fields})})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variables {
		if _, err := env.Variable(v[0], v[1]); err != nil {
			t.Fatalf("%s: %v", v[0], err)
		}
	}
	return env
}

func TestVariables(t *testing.T) {
	t.Parallel()
	self := map[string]any{"spec": map[string]any{"name": "a", "count": int64(3), "at": "2026-01-02T03:04:05Z",
		"workers": []any{map[string]any{"name": "w"}}}}
	vars := rules.Vars{Self: self, Params: map[string]any{"p": "x"}, Inputs: map[string]any{"given": map[string]any{"data": "d"}}}
	name, twice := [2]string{"name", "self.spec.name + '-' + params.p"}, [2]string{"twice", "variables.name + variables.name"}
	for _, row := range []struct {
		reason    string
		variables [][2]string
		expr      string
		want      any
		// problem is the error of compiling, failure that of evaluating.
		problem, failure string
	}{
		{"its value", [][2]string{name}, "variables.name", "a-x", "", ""},
		{"one that uses another", [][2]string{name, twice}, "variables.twice", "a-xa-x", "", ""},
		{"its type is known", [][2]string{{"n", "self.spec.count * 2"}}, "variables.n + 'x'", nil, "'+' does not take '(int, string)'", ""},
		{"a time stays one", [][2]string{{"at", "self.spec.at"}}, "variables.at.getFullYear()", int64(2026), "", ""},
		{"a list of objects", [][2]string{{"l", "self.spec.workers"}}, "variables.l[0].nam", nil, "has no field nam", ""},
		{"an item of a list", [][2]string{{"w", "self.spec.workers[0]"}}, "variables.w.nam", nil, "has no field nam", ""},
		{"a filtered list", [][2]string{{"l", "self.spec.workers.filter(w, w.name == 'w')"}}, "variables.l.map(w, w.name)", []any{"w"}, "", ""},
		{"a map that an expression makes", [][2]string{{"m", "{'k': 'v'}"}}, "variables.m.k + variables.m['k']", "vv", "", ""},
		{"is it there", [][2]string{name}, "has(variables.name)", true, "", ""},
		{"one that is unknown", [][2]string{name}, "variables.nam", nil, "variables has no field nam", ""},
		{"one that comes later", nil, "variables.name", nil, "there are no variables here", ""},
		{"an error where it is used", [][2]string{{"bad", "self.spec.workers[7].name"}}, "variables.bad", nil, "", "variables.bad: "},
		{"no error where it is not used",
			[][2]string{{"bad", "self.spec.workers[7].name"}}, "self.spec.count > 2 || variables.bad == 'x'", true, "", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			program, err := declared(t, row.variables...).Any(row.expr, rules.Upstream, "")
			if row.problem != "" {
				if err == nil || !strings.Contains(err.Error(), row.problem) {
					t.Errorf("%v, want %q", err, row.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Eval(vars, nil)
			if diff := cmp.Diff(row.want, got); diff != "" || (err == nil) != (row.failure == "") ||
				err != nil && !strings.Contains(err.Error(), row.failure) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestReadsThroughVariables: an expression reads what its variables read, recursively.
func TestReadsThroughVariables(t *testing.T) {
	t.Parallel()
	env := declared(t, [2]string{"a", "self.spec.name"}, [2]string{"b", "variables.a + inputs.given.data"}, [2]string{"c", "self.spec.count"})
	program, err := env.Any("variables.b", rules.Upstream, "")
	if err != nil {
		t.Fatal(err)
	}
	self, _ := program.Reads("self")
	inputs, _ := program.Reads("inputs")
	if !slices.EqualFunc(self, [][]string{{"spec", "name"}}, slices.Equal) ||
		!slices.EqualFunc(inputs, [][]string{{"given", "data"}}, slices.Equal) {
		t.Errorf("it reads %v of self and %v of the inputs", self, inputs)
	}
	if _, constant := program.Constant(); constant {
		t.Error("it counts as constant")
	}
}

// TestVariablesAreEvaluatedOnce: a variable is evaluated once for all expressions of an object, and its cost counts once.
func TestVariablesAreEvaluatedOnce(t *testing.T) {
	t.Parallel()
	env := declared(t, [2]string{"l", "self.spec.workers.map(w, w.name)"})
	vars := rules.Vars{Self: map[string]any{"spec": map[string]any{"workers": slices.Repeat([]any{map[string]any{"name": "w"}}, 1000)}}}
	cost := func(uses int, values *rules.Values) uint64 {
		vars.Values = values
		budget := rules.NewBudget(t.Context())
		before := budget.Left()
		for range uses {
			program, err := env.Any("size(variables.l)", rules.Upstream, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := program.Eval(vars, budget); err != nil {
				t.Fatal(err)
			}
		}
		return before - budget.Left()
	}
	once, often := cost(1, rules.NewValues()), cost(10, rules.NewValues())
	if once < 1000 || often > once+100 {
		t.Errorf("one use costs %d, ten cost %d", once, often)
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	env := declared(t, [2]string{"name", "self.spec.name + 'x'"}, [2]string{"twice", "variables.name + variables.name"},
		[2]string{"first", "self.spec.workers[0]"})
	for expr, want := range map[string]string{
		"variables.name == 'variables.name'": "(self.spec.name + 'x') == 'variables.name'",
		"variables.twice":                    "((self.spec.name + 'x') + (self.spec.name + 'x'))",
		"variables.first.name":               "(self.spec.workers[0]).name",
		"has(variables.first.name)":          "has((self.spec.workers[0]).name)",
		"has(variables.name)":                "true",
		"self.spec.count > 1":                "self.spec.count > 1",
	} {
		if got, err := env.Inline(expr); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", expr, got, err, want)
		}
	}
	if _, err := env.Inline("size(variables) > 0"); err == nil {
		t.Error("all variables at once have no text")
	}
}
