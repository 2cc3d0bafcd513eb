package engine_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// renamedAll has every ConfigMap get another name, so that guard counts as many deletions as there are Widgets.
func renamedAll(t *testing.T, conf string) string {
	t.Helper()
	return replaceOnce(t, conf, "name: {{ .spec.name | default .metadata.name }}", "name: new-{{ .metadata.name }}")
}

// TestGuardHoldsWhateverIsEdited: a change that waits for confirmation waits whatever anybody writes to the upstreams, and an edit from the
// time when no process ran counts: nobody knows it apart from what the config has changed.
func TestGuardHoldsWhateverIsEdited(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		meanwhile    string // a patch of each Widget while nothing runs
	}{
		{"a start", "the config has changed while nothing ran", `{}`},
		{"a start after edits", "a rollout often comes with edits of the same commit", `{"spec":{"data":{"other":"value"}}}`},
		{"a start of what is paused", "what the config does at the resumption is not counted then", `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name)
			standing(t, ns, conf).halt()
			each := func(patch string) {
				eachGuarded(func(up string) { testkit.Patch(t, widgets, ns, up, "somebody", fill(patch, ns, name)) })
			}
			each(row.meanwhile)
			start(t, testkit.Config(t), renamedAll(t, conf))
			for _, patch := range []string{`{}`, `{"metadata":{"annotations":{"NAME.example.com/paused":null,"example.com/seen":"yes"}}}`, `{"spec":{"data":{"more":"value"}}}`} {
				each(patch)
				waitState(t, name, "GuardWaiting")
				stayAll(t, ns)
			}
		}))
	}
}

// TestGuardCountsWhatComesLater: a renamed object that comes after another one, which is not ready, counts when the config is changed.
func TestGuardCountsWhatComesLater(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, fill(widgetConfig, ns, name), "downstreams:\n", `downstreams:
  - name: first
    apiVersion: v1
    kind: Service
    ready: {rules: [{rule: "downstream.metadata.?annotations[?'test.example.com/up'].orValue('') == 'yes'", message: starting}]}
    template: |
      metadata: {name: {{ .metadata.name }}}
      spec: {ports: [{port: 80}]}
`)
		r := start(t, testkit.Config(t), conf).ready()
		eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}}`)) })
		eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
		r.halt()
		start(t, testkit.Config(t), with(renamedAll(t, conf), "after: [first]"))
		waitState(t, name, "GuardWaiting")
		stayAll(t, ns)
	})
}

// TestGuardHoldsWhatInputsDelete: what an input would delete stays held when the upstreams are annotated, and while they are paused.
func TestGuardHoldsWhatInputsDelete(t *testing.T) {
	t.Parallel()
	for _, paused := range []string{"null", `"true"`} {
		t.Run(paused, spaced(func(t *testing.T, ns, name string) {
			conf := with(fill(widgetConfig, ns, name), dropKey) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, namespace: " + ns + ", missing: Allow}]\n"
			standing(t, ns, conf)
			each := func(value string) {
				eachGuarded(func(up string) {
					testkit.Patch(t, widgets, ns, up, "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":`+value+`}}}`, ns, name))
				})
			}
			each(paused)
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {drop: 'yes'}}")
			waitMetric(t, guardedWidgets, "corollary_guard_deletions", name)
			each(`null, "example.com/seen": "yes"`)
			stayAll(t, ns)
		}))
	}
}
