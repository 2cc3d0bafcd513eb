package engine_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// In a namespace that is being deleted, the object of deletion.before cannot be created: the deletion does what onFailure says, at once.
func TestBeforeInTerminatingNamespace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		lines        []string
		end          func(t *testing.T, ns string) // what a person does about a deletion that is held
	}{
		{name: "proceeds", reason: "the failure is one like any other", lines: []string{"onFailure: Proceed"}},
		{name: "recorded by hand", reason: "the message says how", end: func(t *testing.T, ns string) {
			passBefore(t, ns, "a")
		}},
		{name: "switched off", reason: "the author of the upstream does not want it any more", lines: []string{`when: self.spec.?name.orValue("") != "none"`},
			end: func(t *testing.T, ns string) {
				testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"name":"none"}}`)
			}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			startMade(t, ns, withBefore(ns, name, row.lines...))
			testkit.Delete(t, namespaces, "", ns)
			testkit.Delete(t, widgets, ns, "a") // as the namespace controller does, which may take its time
			if row.end != nil {
				up := beforeIs(t, ns, "a", "BeforeFailed", "a-drain cannot be created: namespace "+ns+" is being deleted; nothing is deleted: ")
				stalled(t, up)
				if beforeItem(up)["state"] != "BeforeFailed" {
					t.Errorf("recorded is %v", beforeItem(up))
				}
				row.end(t, ns)
			}
			waitGone(t, widgets, ns, "a")
		}))
	}
}
