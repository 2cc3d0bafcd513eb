package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// patient never retries within a test: what happens follows from an event.
func patient(conf string) string {
	return strings.Replace(conf, "retry: {minDelay: 1s, maxDelay: 10s}", "retry: {minDelay: 1h, maxDelay: 2h}", 1)
}

// waitTaken waits until one upstream has the object of that name and the others say that it is whose. It returns the winner.
func waitTaken(t *testing.T, ns, object string, upstreams ...string) (owner string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		var said []string
		owner = ""
		for _, up := range upstreams {
			status, reason, message := condition(testkit.Get(t, widgets, ns, up), "Ready")
			if said = append(said, up+": "+reason+": "+message); status == "True" {
				owner = up
			}
		}
		for _, up := range upstreams {
			_, reason, message := condition(testkit.Get(t, widgets, ns, up), "Ready")
			if owner == "" || up != owner && (reason != "Conflict" || !strings.Contains(message, object+" exists and belongs to Widget "+ns+"/"+owner)) {
				return false, strings.Join(said, "\n")
			}
		}
		return true, ""
	})
	return owner
}

// The name of an object goes to one that waits for it when it becomes free, and the others say at once whose it is now: the events of
// the object wake them, no retry. At rest that costs nothing.
func TestConflictFollowsTheOwner(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startCounted(t, patient(fill(widgetConfig, ns, name)))
		var left []string
		for i := range 6 {
			left = append(left, fmt.Sprintf("w%d", i))
			testkit.Apply(t, ns, widget(left[i], "{name: one, data: {key: "+left[i]+"}}"))
		}
		for len(left) > 2 {
			owner := waitTaken(t, ns, "one", left...)
			waitData(t, ns, "one", "key", owner)
			quiet(t, counter)
			testkit.Delete(t, widgets, ns, owner)
			left = slices.DeleteFunc(left, func(up string) bool { return up == owner })
		}
		owner := waitTaken(t, ns, "one", left...)
		testkit.Apply(t, ns, widget(owner, "{name: two, data: {key: moved}}")) // its owner gives the name up
		other := left[0]
		if other == owner {
			other = left[1]
		}
		waitData(t, ns, "one", "key", other)
		waitCondition(t, widgets, ns, other, "Ready", "True")
		quiet(t, counter)

		testkit.Apply(t, ns, widget(owner, "{name: one, data: {key: again}}"))
		waitTaken(t, ns, "one", left...)
		testkit.Delete(t, configMaps, ns, "one") // by somebody else: whoever is first
		waitTaken(t, ns, "one", left...)
		quiet(t, counter)
	})
}
