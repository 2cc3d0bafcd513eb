package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
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
	env := must.Get(rules.NewEnv(rules.EnvOptions{Self: schemaOf(map[string]spec.Schema{"spec": *fields})})).In(t)
	for _, v := range variables {
		if _, err := env.Variable(v[0], v[1]); err != nil {
			t.Fatalf("%s: %v", v[0], err)
		}
	}
	return env
}

// TestVariables runs the entries of testdata/variables.txt: variables, and an expression that uses them.
func TestVariables(t *testing.T) {
	t.Parallel()
	self := map[string]any{"spec": map[string]any{"name": "a", "count": int64(3), "at": "2026-01-02T03:04:05Z",
		"workers": []any{map[string]any{"name": "w"}}}}
	vars := rules.Vars{Self: self, Params: map[string]any{"p": "x"}, Inputs: map[string]any{"given": map[string]any{"data": "d"}}}
	golden.Table(t, "testdata/variables.txt", func(t *testing.T, input string) string {
		lines := strings.Split(input, "\n")
		var variables [][2]string
		for _, line := range lines[:len(lines)-1] {
			name, expression, _ := strings.Cut(line, " = ")
			variables = append(variables, [2]string{name, expression})
		}
		program, err := declared(t, variables...).Any(lines[len(lines)-1], rules.Upstream, "")
		if err != nil {
			return "does not compile: " + err.Error()
		}
		got, err := program.Eval(vars, nil)
		if err != nil {
			return "fails: " + err.Error()
		}
		return fmt.Sprintf("%T %#v", got, got)
	})
}

// TestReadsThroughVariables: an expression reads what its variables read, recursively.
func TestReadsThroughVariables(t *testing.T) {
	t.Parallel()
	env := declared(t, [2]string{"a", "self.spec.name"}, [2]string{"b", "variables.a + inputs.given.data"}, [2]string{"c", "self.spec.count"})
	program := must.Get(env.Any("variables.b", rules.Upstream, "")).In(t)
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

// TestVariablesAreEvaluatedOnce: a variable is evaluated once for all expressions of an object, and its cost counts
// once.
func TestVariablesAreEvaluatedOnce(t *testing.T) {
	t.Parallel()
	env := declared(t, [2]string{"l", "self.spec.workers.map(w, w.name)"})
	vars := rules.Vars{Self: map[string]any{"spec": map[string]any{"workers": slices.Repeat([]any{map[string]any{"name": "w"}}, 1000)}}}
	cost := func(uses int, values *rules.Values) uint64 {
		vars.Values = values
		budget := rules.NewBudget(t.Context())
		before := budget.Left()
		for range uses {
			program := must.Get(env.Any("size(variables.l)", rules.Upstream, "")).In(t)
			must.Get(program.Eval(vars, budget)).In(t)
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
