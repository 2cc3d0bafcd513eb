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

// TestOperatorsShareARecord: two operators with contradicting selectors record their objects at the same place of one status. What the other
// one has recorded is not one's own when an upstream changes sides: it is neither deleted nor written to.
func TestOperatorsShareARecord(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, policy string
		both                 bool
	}{
		{"orphan", "only the other operator's annotation marks it", "Orphan", false},
		{"delete", "it has an owner reference to the upstream, as one's own would", "Delete", false},
		{"orphan, both run", "the other one releases it meanwhile, and leaves alone what the new one creates", "Orphan", true},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			of := func(tier, policy string) string {
				conf := watched(fill(widgetConfig, ns, name+"-"+tier), "labelSelector: {matchLabels: {tier: "+tier+"}}")
				return with(replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}", `"{{ .metadata.name }}-`+tier+`"`), "deletionPolicy: "+policy)
			}
			gold, silver := of("gold", row.policy), of("silver", "Delete")
			configs := []string{gold}
			if row.both {
				configs = append(configs, silver)
			}
			r := start(t, testkit.Config(t), configs...).ready()
			testkit.Apply(t, ns, "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: a, labels: {tier: gold}}, spec: {data: {key: value}}}")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			theirs := waitData(t, ns, "a-gold", "key", "value")
			if !row.both {
				r.halt()
			}
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"tier":"silver"}}}`)
			if !row.both {
				start(t, testkit.Config(t), silver).ready()
			}
			waitData(t, ns, "a-silver", "key", "value")
			never(t, func() (bool, string) {
				cm, own := testkit.Find(t, configMaps, ns, "a-gold"), testkit.Get(t, configMaps, ns, "a-silver")
				switch {
				case cm == nil || cm.GetUID() != theirs.GetUID():
					return true, "the other operator's object is gone"
				case !row.both && cm.GetResourceVersion() != theirs.GetResourceVersion():
					return true, fmt.Sprintf("it was written to: %v", cm.Object)
				}
				return len(own.GetOwnerReferences()) != 1, fmt.Sprintf("the new object has lost its marks: %v", own.Object)
			})
		}))
	}
}
