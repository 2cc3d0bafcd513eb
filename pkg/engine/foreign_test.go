package engine_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestForeignChanges: what others change of an object without touching what is ours costs no reconcile, also after a start; what is ours is
// repaired at once.
func TestForeignChanges(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, operator string) {
		conf := fill(widgetConfig, ns, operator) + "guard: {maxChanged: 100%, minimum: 1}\n"
		const n = 20
		r := start(t, testkit.Config(t), conf).ready()
		for i := range n {
			testkit.Apply(t, ns, widget(named(i), "{data: {key: old}}"))
		}
		for i := range n {
			waitCondition(t, widgets, ns, named(i), "Ready", "True")
		}
		patch := func(patch string) {
			for i := range n {
				testkit.Patch(t, configMaps, ns, named(i), "somebody", patch)
			}
		}
		change := func(to string) {
			t.Helper()
			reconciles := func() float64 { return metric(t, "corollary_reconcile_seconds", operator) }
			repaired := func(want float64) {
				testkit.Eventually(t, patience, func() (bool, string) {
					return reconciles() >= want, fmt.Sprintf("%v reconciles, want %v", reconciles(), want)
				})
				for i := range n {
					waitData(t, ns, named(i), "key", "old")
					eventuallyCondition(t, ns, named(i), "True", "", "")
				}
			}
			before := reconciles()
			patch(`{"data":{"key":"` + to + `"}}`)
			repaired(before + n)
			for _, theirs := range []string{
				`{"metadata":{"labels":{"theirs":"` + to + `"}}}`, `{"metadata":{"annotations":{"theirs":"` + to + `"}}}`,
				`{"metadata":{"finalizers":["example.com/` + to + `"]}}`, `{"metadata":{"finalizers":null}}`,
				`{"data":{"theirs":"` + to + `"}}`, `{"data":{"theirs":null}}`,
			} {
				patch(theirs)
			}
			patch(`{"data":{"key":"again"}}`) // the last events of the same objects
			repaired(before + 2*n)
			// The first events may come while a reconcile has not noted yet that all is in sync.
			if now := reconciles() - before; now > 4*n {
				t.Errorf("%s: %v reconciles of %d upstreams whose objects had two changes of ours and six of others", to, now, n)
			}
		}
		change("running")
		r.halt()
		start(t, testkit.Config(t), conf).ready()
		change("restarted")
	})
}
