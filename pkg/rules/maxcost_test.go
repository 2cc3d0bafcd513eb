package rules_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/cost"
)

// boundedSelf has a text, a list of texts, a map and a list of objects, all bounded.
func boundedSelf(n int64) *spec.Schema {
	text := spec.StringProperty()
	text.MaxLength = &n
	list := spec.ArrayProperty(text)
	list.MaxItems = &n
	member := spec.MapProperty(text)
	member.MaxProperties = &n
	number := spec.Int64Property()
	item := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"t": *text, "n": *number}}}
	items := spec.ArrayProperty(item)
	items.MaxItems = &n
	inner := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"},
		Properties: map[string]spec.Schema{"t": *text, "l": *list, "m": *member, "o": *items, "n": *number}}}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": *inner}}}
}

// largest is an object at the bounds of boundedSelf, of one letter.
func largest(n int, letter string) map[string]any {
	text := strings.Repeat(letter, n)
	var list, items []any
	member := map[string]any{}
	for i := range n {
		list = append(list, text)
		items = append(items, map[string]any{"t": text, "n": int64(i)})
		member[fmt.Sprintf("%s%d", text, i)] = text
	}
	return map[string]any{"spec": map[string]any{"t": text, "l": list, "m": member, "o": items, "n": int64(n)}}
}

// What an evaluation costs is never more than the estimate: for each function whose cost depends on sizes, with objects
// at the bounds.
func TestMaxCostIsABound(t *testing.T) {
	t.Parallel()
	expressions := must.Get(os.ReadFile("testdata/maxcost.txt")).In(t)
	for _, n := range []int{1, 7, 40} {
		env := must.Get(rules.NewEnv(rules.EnvOptions{Self: boundedSelf(int64(n))})).In(t)
		for _, expression := range strings.Split(strings.TrimSpace(string(expressions)), "\n") {
			program, err := env.Any(expression, rules.Upstream, "")
			if err != nil {
				t.Errorf("%s: %v", expression, err)
				continue
			}
			bound, unbounded := program.MaxCost(cost.MaxStored)
			for _, b := range unbounded {
				t.Errorf("%s: %s has no bound", expression, b.Path)
			}
			for _, letter := range []string{"a", ":", "é"} {
				budget := rules.NewBudget(t.Context())
				before := budget.Left()
				_, _ = program.Eval(rules.Vars{Self: largest(n, letter)}, budget) // some fail, at a cost
				if spent := before - budget.Left(); spent > bound {
					t.Errorf("%s costs %d with %d times %q, and at most %d was estimated", expression, spent, n, letter, bound)
				}
			}
		}
	}
}

// Patterns bound texts, and how often a separator is in them.
func TestMaxCostOfPatterns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, pattern string
		atMost, atLeast uint64
	}{
		{reason: "nothing bounds it, and each character may be a separator", atLeast: 1_000_000, atMost: 1 << 62},
		{reason: "one separator in a text of any length", pattern: "^[a-z]+:[0-9]+$", atMost: 700_000},
		{reason: "a text of few characters", pattern: "^[a-z]{1,20}:[0-9]{1,5}$", atMost: 100},
		{reason: "not anchored", pattern: "[a-z]+:[0-9]+", atLeast: 1_000_000, atMost: 1 << 62},
		{reason: "a class with the separator", pattern: "^[a-z:]+$", atLeast: 1_000_000, atMost: 1 << 62},
		{reason: "a choice that is not anchored as a whole", pattern: "^a|:b$", atLeast: 1_000_000, atMost: 1 << 62},
		{reason: "over lines, the anchors are of a line", pattern: "(?m)^a:b$", atLeast: 1_000_000, atMost: 1 << 62},
	} {
		text := spec.StringProperty()
		text.Pattern = row.pattern
		env := must.Get(rules.NewEnv(rules.EnvOptions{Self: &spec.Schema{SchemaProps: spec.SchemaProps{
			Type: []string{"object"}, Properties: map[string]spec.Schema{"t": *text}}}})).In(t)
		program := must.Get(env.Any("self.t.split(':')[0]", rules.Upstream, "")).In(t)
		if most, _ := program.MaxCost(cost.MaxStored); most < row.atLeast || most > row.atMost {
			t.Errorf("%s: %q: it costs at most %d, want %d to %d", row.reason, row.pattern, most, row.atLeast, row.atMost)
		}
	}
}
