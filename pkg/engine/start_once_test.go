package engine_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestStartLooksOnce: a start with a guard counts each upstream, and reconciles only those for which there is something to do. That
// finds whatever has happened while no process ran, and the others are as if they had been reconciled.
func TestStartLooksOnce(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, operator := testkit.Namespace(t), testkit.Unique(t)
		conf := fill(widgetConfig, ns, operator) + "guard: {maxChanged: 100%, minimum: 1}\n"
		rows := []struct {
			reason string
			change func(name string)
			found  func(name string)
		}{
			{"its object has drifted", func(name string) {
				testkit.Patch(t, configMaps, ns, name, "somebody", `{"data":{"key":"theirs"}}`)
			}, nil},
			{"its object was deleted", func(name string) { testkit.Delete(t, configMaps, ns, name) }, nil},
			{"its object lost the mark of its owner", func(name string) {
				testkit.Patch(t, configMaps, ns, name, "somebody", `{"metadata":{"ownerReferences":null}}`)
			}, func(name string) {
				testkit.Eventually(t, patience, func() (bool, string) {
					return len(testkit.Get(t, configMaps, ns, name).GetOwnerReferences()) == 1, "it has no owner"
				})
			}},
			{"it was changed", func(name string) {
				testkit.Patch(t, widgets, ns, name, "somebody", `{"spec":{"data":{"key":"new"}}}`)
			}, func(name string) { waitData(t, ns, name, "key", "new") }},
			{"its object has another name now", func(name string) {
				testkit.Patch(t, widgets, ns, name, "somebody", `{"spec":{"name":"renamed"}}`)
			}, func(name string) { waitData(t, ns, "renamed", "key", "old"); waitGone(t, configMaps, ns, name) }},
			{"somebody changed its status", func(name string) {
				testkit.Patch(t, widgets, ns, name, "somebody", `{"status":{"conditions":null,"downstreams":null}}`, "status")
			}, nil},
			{"it was deleted", func(name string) { testkit.Delete(t, widgets, ns, name) },
				func(name string) { waitGone(t, configMaps, ns, name); waitGone(t, widgets, ns, name) }},
		}
		const same = 100 // of which nothing has changed
		r := start(t, testkit.Config(t), conf).ready()
		applyMany(t, ns, len(rows)+same, "{data: {key: old}}")
		r.halt()
		for i, row := range rows {
			row.change(named(i))
		}
		looks := metric(t, "corollary_reconcile_seconds", operator)
		start(t, testkit.Config(t), conf).ready()
		for i, row := range rows {
			t.Log(row.reason)
			if row.found != nil {
				row.found(named(i))
			} else {
				waitData(t, ns, named(i), "key", "old")
			}
			if row.reason != "it was deleted" {
				waitCondition(t, widgets, ns, named(i), "Ready", "True")
			}
		}
		n := float64(same + len(rows) - 1)
		testkit.Eventually(t, patience, func() (bool, string) {
			inSync, ready := metric(t, "corollary_objects", operator, "state", "InSync"), metric(t, "corollary_upstreams", operator, "ready", "True")
			return inSync == n && ready == n, fmt.Sprintf("the metrics have %.0f objects in sync and %.0f ready upstreams, want %.0f", inSync, ready, n)
		})
		// One for each that is the same, and a few for the others, whose objects and status change.
		if looks = metric(t, "corollary_reconcile_seconds", operator) - looks; looks > same+8*float64(len(rows)) {
			t.Errorf("it looked %.0f times at %d upstreams", looks, same+len(rows))
		}
		for i := len(rows); i < len(rows)+5; i++ { // what was not reconciled is looked after
			testkit.Patch(t, configMaps, ns, named(i), "somebody", `{"data":{"key":"theirs"}}`)
			waitData(t, ns, named(i), "key", "old")
		}
	})
}
