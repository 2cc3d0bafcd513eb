package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// monitorSchema returns the schema of the objects of a list.
func monitorSchema() *spec.Schema {
	at := *spec.StringProperty()
	at.Format = "date-time"
	fields := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"team": *spec.StringProperty(), "url": *spec.StringProperty(), "weight": *spec.Int64Property(), "at": at,
	}}}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": fields}}}
}

func listEnv(t *testing.T) *Env {
	t.Helper()
	env, err := NewEnv(EnvOptions{Self: monitorSchema(), Lists: map[string]*spec.Schema{"monitors": monitorSchema(), "untyped": nil}})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestReadsOfLists: for an input that is a list, the fields of its objects that an expression reads are returned.
func TestReadsOfLists(t *testing.T) {
	for _, c := range []struct {
		expr   string
		want   [][]string
		reason string
	}{
		{`inputs.monitors`, [][]string{{"monitors"}}, "the whole list"},
		{`inputs.monitors.map(m, m.spec.url)`, [][]string{{"monitors", "metadata", "name"}, {"monitors", "spec", "url"}}, "a field of each"},
		{`inputs.monitors.map(m, m)`, [][]string{{"monitors"}}, "each as a whole"},
		{`inputs.monitors.filter(m, m.spec.weight > 1)`, [][]string{{"monitors"}}, "a filter gives whole objects"},
		{`inputs.monitors.filter(m, m.spec.weight > 1).map(m, m.spec.url)`,
			[][]string{{"monitors", "metadata", "name"}, {"monitors", "spec", "url"}, {"monitors", "spec", "weight"}}, "of what a filter keeps"},
		{`size(inputs.monitors)`, [][]string{{"monitors", "metadata", "name"}}, "how many"},
		{`inputs.monitors.filter(m, m.spec.weight > 1).size()`,
			[][]string{{"monitors", "metadata", "name"}, {"monitors", "spec", "weight"}}, "how many a filter keeps"},
		{`inputs.monitors[0].spec.url`, [][]string{{"monitors", "spec", "url"}}, "one of them"},
		{`inputs.monitors.exists(m, m.spec.?team.orValue("") == self.spec.team)`,
			[][]string{{"monitors", "metadata", "name"}, {"monitors", "spec", "team"}}, "an optional field"},
		{`inputs.monitors.transformList(i, m, i > 0, m.spec.url)`,
			[][]string{{"monitors", "metadata", "name"}, {"monitors", "spec", "url"}}, "the second variable is the object"},
		{`inputs.monitors.map(m, inputs.untyped.map(m, m.a))`,
			[][]string{{"monitors", "metadata", "name"}, {"untyped", "a"}, {"untyped", "metadata", "name"}}, "an inner variable hides an outer one"},
		{`inputs.monitors.map(m, [1].map(m, m))`, [][]string{{"monitors", "metadata", "name"}}, "also if it is of no list"},
		{`inputs.settings.data.map(m, m)`, [][]string{{"settings", "data"}}, "an input that is no list"},
		{`[inputs.monitors].map(l, l[0].spec.url)`, [][]string{{"monitors"}}, "a list of lists is not followed"},
	} {
		p, err := listEnv(t).Any(c.expr, Upstream, "")
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		paths, whole := p.Reads("inputs")
		if diff := cmp.Diff(c.want, paths); diff != "" || whole {
			t.Errorf("%s (%s): whole %v\n%s", c.expr, c.reason, whole, diff)
		}
	}
}

// TestEquality: an equality of a text of the object and one of the upstream is found among the operands of &&.
func TestEquality(t *testing.T) {
	team := &Equality{Object: []string{"spec", "team"}, Self: []string{"spec", "team"}}
	for _, c := range []struct {
		input, expr string
		want        *Equality
		reason      string
	}{
		{"monitors", `object.spec.team == self.spec.team`, team, "an equality"},
		{"monitors", `self.spec.team == object.spec.team`, team, "the other way round"},
		{"monitors", `has(object.spec.team) && object.spec.team == self.spec.team && object.spec.weight > 1`, team, "one of several conditions"},
		{"monitors", `object.spec.?team == self.spec.?team`, team, "optional fields"},
		{"untyped", `object.spec.team == self.spec.team`, team, "a kind without a schema"},
		{"monitors", `object.metadata.labels["team"] == self.metadata.name`,
			&Equality{Object: []string{"metadata", "labels", "team"}, Self: []string{"metadata", "name"}}, "a label"},
		{"monitors", `object.spec.team == self.spec.team || object.spec.weight > 1`, nil, "either will do"},
		{"monitors", `!(object.spec.team == self.spec.team)`, nil, "a negation"},
		{"monitors", `object.spec.at == self.spec.at`, nil, "times are equal that are written in two ways"},
		{"monitors", `object.spec.weight == self.spec.weight`, nil, "numbers"},
		{"monitors", `object.spec.team == object.spec.url`, nil, "two fields of the object"},
		{"monitors", `object.spec.team.lowerAscii() == self.spec.team`, nil, "not a field"},
		{"monitors", `object.spec.team == params.team`, nil, "a parameter"},
	} {
		p, err := listEnv(t).Bool(c.expr, Matching, c.input)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if diff := cmp.Diff(c.want, p.Equality()); diff != "" {
			t.Errorf("%s (%s): %s", c.expr, c.reason, diff)
		}
	}
}

// TestMatchingScope: the variables of the scope Matching have types; it has no inputs.
func TestMatchingScope(t *testing.T) {
	for expr, want := range map[string]string{
		`object.spec.tem == self.spec.team`: "object.spec has no field tem: did you mean team?",
		`object.spec.team == self.spec.tem`: "self.spec has no field tem: did you mean team?",
		`inputs.other.spec.x == "a"`:        "inputs is not known here: valid names are self, object and params",
		`object.spec.team`:                  "the result is a string, not a bool",
	} {
		_, err := listEnv(t).Bool(expr, Matching, "monitors")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", expr, err, want)
		}
	}
}
