package load

import (
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
)

func TestDisjoint(t *testing.T) {
	selector := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	for _, row := range []struct {
		reason string
		a, b   config.Watch
		want   bool
	}{
		{"nothing is chosen", config.Watch{}, config.Watch{}, false},
		{"other namespaces", config.Watch{Namespaces: []string{"a", "b"}}, config.Watch{Namespaces: []string{"c"}}, true},
		{"a namespace in common", config.Watch{Namespaces: []string{"a", "b"}}, config.Watch{Namespaces: []string{"b"}}, false},
		{"one watches all", config.Watch{Namespaces: []string{"a"}}, config.Watch{}, false},
		{"another value of one label", config.Watch{LabelSelector: selector("team", "a")},
			config.Watch{LabelSelector: selector("team", "b")}, true},
		{"other labels", config.Watch{LabelSelector: selector("team", "a")}, config.Watch{LabelSelector: selector("app", "b")}, false},
		{"one selects all", config.Watch{LabelSelector: selector("team", "a")}, config.Watch{LabelSelector: &metav1.LabelSelector{}}, false},
		{"there and not there", config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpExists)},
			config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpDoesNotExist)}, true},
		{"a value and not there", config.Watch{LabelSelector: selector("x", "a")},
			config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpDoesNotExist)}, true},
		{"in and not in", config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpIn, "a", "b")},
			config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpNotIn, "b", "a", "c")}, true},
		{"there, but none of some", config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpExists)},
			config.Watch{LabelSelector: expression("x", metav1.LabelSelectorOpNotIn, "a")}, false},
		{"labels of namespaces", config.Watch{NamespaceSelector: selector("team", "a")},
			config.Watch{NamespaceSelector: selector("team", "b")}, true},
		{"labels of the object are not those of its namespace", config.Watch{NamespaceSelector: selector("team", "a")},
			config.Watch{LabelSelector: selector("team", "b")}, false},
	} {
		if disjoint(&row.a, &row.b) != row.want || disjoint(&row.b, &row.a) != row.want {
			t.Errorf("%s: disjoint is not %t", row.reason, row.want)
		}
	}
}

// Selectors contradict each other if and only if no set of labels satisfies both: tried with all small ones. "other"
// means every value that no selector names.
func TestContradictByTrying(t *testing.T) {
	values := []string{"", "x", "y", "z", "other"} // "" is no label
	var all []labels.Set
	for _, a := range values {
		for _, b := range values {
			set := labels.Set{}
			for key, value := range map[string]string{"a": a, "b": b} {
				if value != "" {
					set[key] = value
				}
			}
			all = append(all, set)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 20000 {
		one, two := randomSelector(r), randomSelector(r)
		first := must.Get(metav1.LabelSelectorAsSelector(one)).In(t)
		second := must.Get(metav1.LabelSelectorAsSelector(two)).In(t)
		both := false
		for _, set := range all {
			both = both || first.Matches(set) && second.Matches(set)
		}
		if contradict(one, two) == both {
			t.Fatalf("%s and %s: contradict is %t", first, second, !both)
		}
		if !both {
			found++
		}
	}
	if found < 1000 || found > 19000 {
		t.Errorf("%d of 20000 pairs contradict each other: the test tries too little", found)
	}
}

func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	keys, values := []string{"a", "b"}, []string{"x", "y", "z"}
	if r.IntN(2) == 0 {
		s.MatchLabels = map[string]string{pick(keys): pick(values)}
	}
	for range r.IntN(3) {
		e := metav1.LabelSelectorRequirement{Key: pick(keys),
			Operator: metav1.LabelSelectorOperator(pick([]string{"In", "NotIn", "Exists", "DoesNotExist"}))}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			for range 1 + r.IntN(2) {
				e.Values = append(e.Values, pick(values))
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}
