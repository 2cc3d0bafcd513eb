//go:build controlplane

package engine_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestForeignChanges: what others change of an object without touching what is ours costs no reconcile, also after a start; what follows
// such a change is found.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	ns, operator := testkit.Namespace(t), testkit.Unique(t)
	conf := fill(widgetConfig, ns, operator) + "guard: {maxChanged: 100%, minimum: 1}\n"
	const n = 20
	r := start(t, testkit.Config(), conf).ready()
	for i := range n {
		testkit.Apply(t, ns, widget(named(i), "{data: {key: old}}"))
	}
	for i := range n {
		waitCondition(t, widgets, ns, named(i), "Ready", "True")
	}
	others := func(when string) {
		t.Helper()
		looks := func() float64 { return metric(t, "corollary_reconcile_seconds", operator) }
		before := looks()
		for _, patch := range []string{
			`{"metadata":{"labels":{"theirs":"` + when + `"}}}`, `{"metadata":{"annotations":{"theirs":"` + when + `"}}}`,
			`{"metadata":{"finalizers":["example.com/` + when + `"]}}`, `{"metadata":{"finalizers":null}}`,
			`{"data":{"theirs":"` + when + `"}}`, `{"data":{"theirs":null}}`,
		} {
			for i := range n {
				testkit.Patch(t, configMaps, ns, named(i), "somebody", patch)
			}
		}
		for i := range n { // the next events of the same objects
			testkit.Patch(t, configMaps, ns, named(i), "somebody", `{"data":{"key":"`+when+`"}}`)
		}
		for i := range n {
			waitData(t, ns, named(i), "key", "old")
			eventuallyCondition(t, ns, named(i), "True", "", "")
		}
		const most = 3 * n // for each repair, with the events of its own writes
		testkit.Eventually(t, patience, func() (bool, string) {
			queued := metric(t, "corollary_queue", operator)
			return queued == 0, fmt.Sprintf("%v upstreams are queued", queued)
		})
		if now := looks() - before; now < n || now > most {
			t.Errorf("%s: %v reconciles of %d upstreams whose objects had one change of ours and six of others, want at most %d", when, now, n, most)
		}
	}
	others("running")
	r.halt()
	start(t, testkit.Config(), conf).ready()
	others("restarted")
}
