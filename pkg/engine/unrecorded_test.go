package engine_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// withoutRecord is a config whose status does not record what was created.
func withoutRecord(t *testing.T, conf string) string {
	t.Helper()
	return replaceOnce(t, conf, "  downstreams: .status.downstreams\n", "")
}

// TestDeletionFindsWhatConventionsHide: without status.downstreams, objects that were created under other conventions do not show in the
// watches, and the upstream must not go as if there were none: the garbage collector may delete what holds those that are to stay.
func TestDeletionFindsWhatConventionsHide(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		from, to     string // of the conventions
		previous     string // without which the deletion is held
		paused, goes bool
	}{
		{"label", "the watch selects by another value", `managed: "yes"`, `managed: "new"`, "", false, false},
		{"label, paused", "nothing is reconciled before the deletion", `managed: "yes"`, `managed: "new"`, "", true, false},
		{"label, deleted", "no owner reference has it collected", `managed: "yes"`, `managed: "new"`, "", false, true},
		{"field manager", "another manager's owner mark proves nothing", "fieldManager: NAME", "fieldManager: NAME-new", "fieldManager: NAME", false, false},
		{"owner annotation", "nothing says whose the object is", "NAME.example.com/owner}", "NAME.example.com/owned-by}", "owner: {annotation: NAME.example.com/owner}", false, false},
	} {
		t.Run(row.name, spacedTwice(func(t *testing.T, ns, other, name string) {
			from, to, spec := fill(row.from, ns, name), fill(row.to, ns, name), `{namespace: `+other+`, data: {key: value}}`
			conf := fill(widgetConfig, ns, name)
			if !row.goes {
				conf = with(conf, "deletionPolicy: Orphan")
			}
			conf = withoutRecord(t, elsewhere(conf, other, ns))
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", spec)
			r.halt()
			changed := replaceOnce(t, conf, from, to)
			if row.paused {
				testkit.Patch(t, widgets, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`, ns, name))
				r = start(t, testkit.Config(t), changed).ready()
			}
			testkit.Delete(t, widgets, ns, "a")
			if !row.paused {
				r = start(t, testkit.Config(t), changed).ready()
			}
			if row.previous != "" {
				beforeIs(t, ns, "a", "Conflict", "set conventions.previous")
				r.halt()
				start(t, testkit.Config(t), replaceOnce(t, changed, "conventions:\n", "conventions:\n  previous: {"+fill(row.previous, ns, name)+"}\n"))
			}
			waitGone(t, widgets, ns, "a")
			if row.goes {
				waitGone(t, configMaps, other, "a")
				return
			}
			cm := testkit.Get(t, configMaps, other, "a")
			if len(cm.GetAnnotations()) > 0 || len(cm.GetManagedFields()) > 0 {
				t.Errorf("it is not released: %v %v", cm.GetAnnotations(), cm.GetManagedFields())
			}
		}))
	}
}

// TestDeletionReadsAbsentObjectsOnce: what does not exist costs one read, and what is not ours holds nothing.
func TestDeletionReadsAbsentObjectsOnce(t *testing.T) {
	t.Parallel()
	for _, theirs := range []bool{false, true} {
		t.Run(map[bool]string{false: "absent", true: "theirs"}[theirs], spaced(func(t *testing.T, ns, name string) {
			counter := testkit.NewCounter()
			conf := withoutRecord(t, with(fill(widgetConfig, ns, name), "deletionPolicy: Orphan"))
			made(t, conf, ns, counter).halt()
			testkit.Delete(t, configMaps, ns, "a")
			if theirs {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: theirs}}")
			}
			testkit.Delete(t, widgets, ns, "a")
			counter.Reset()
			start(t, counter.Wrap(testkit.Config(t)), conf)
			waitGone(t, widgets, ns, "a")
			exactly(t, counter, 1, "what does not exist is read once", keyed(readDownstream))
			if theirs {
				waitData(t, ns, "a", "key", "theirs")
			}
		}))
	}
}
