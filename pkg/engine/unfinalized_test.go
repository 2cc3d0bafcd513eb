//go:build controlplane

package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestUpstreamGoneWithItsFinalizer: an API server that deletes an upstream at the moment that its finalizer is added may not wait for it. What
// was made for it is cleaned up nevertheless, and the next upstream of that name is not in conflict with it.
func TestUpstreamGoneWithItsFinalizer(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		start(t, testkit.Config(), fill(strings.Replace(widgetConfig, "owner: {", "owner: {reference: false, ", 1), ns, name))
		for i := range 5 {
			testkit.Apply(t, ns, widget(named(i), "{data: {key: value}}"))
		}
		for i := range 5 {
			waitCondition(t, widgets, ns, named(i), "Ready", "True")
			testkit.Vanish(t, widgets, ns, named(i))
			if again {
				testkit.Apply(t, ns, widget(named(i), "{data: {key: again}}"))
			}
		}
		for i := range 5 {
			if again {
				waitData(t, ns, named(i), "key", "again")
				waitCondition(t, widgets, ns, named(i), "Ready", "True")
			} else {
				waitGone(t, configMaps, ns, named(i))
			}
		}
	}
}
