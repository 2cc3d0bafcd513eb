package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/bubble"
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

// TestGuardCountsInputsTogether: one act on many inputs counts as a whole, whether each upstream reads one of them or one reads all, and
// however fast they go.
func TestGuardCountsInputsTogether(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		upstreams    int // which share the inputs evenly
		all          bool
	}{
		{"one each", "no input has several readers", guardedWidgets, true},
		{"one for all", "no input has several readers, and those that go first are deleted before the others go", 1, false},
		{"one for all, at once", "a collection is deleted by one request", 1, true},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := withoutRecord(t, fill(widgetConfig, ns, name)) + "inputs: [{name: volumes, apiVersion: test.example.com/v1, kind: Gadget, list: {matching: 'object.spec.data.of == self.metadata.name'}}]\n"
			conf = replaceOnce(t, conf, "    # downstream\n", "    forEach: {items: inputs.volumes}\n")
			conf = replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}", `"{{ item.metadata.name }}"`)
			r := start(t, testkit.Config(t), conf).ready()
			for i := range guardedWidgets {
				testkit.Apply(t, ns, object("Gadget", named(i), fmt.Sprintf(`{data: {of: %s}}`, named(i%row.upstreams))))
			}
			for i := range row.upstreams {
				testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
			}
			eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
			const allowed = 5 // guard.minimum
			for i := range guardedWidgets {
				testkit.Delete(t, gadgets, ns, named(i))
				if !row.all && i < allowed {
					waitGone(t, configMaps, ns, named(i))
				}
			}
			waitState(t, name, "GuardWaiting")
			never(t, func() (bool, string) {
				n := len(testkit.List(t, configMaps, ns, selector(name)))
				return n < guardedWidgets-allowed, fmt.Sprintf("%s: %d of %d objects are left", row.reason, n, guardedWidgets)
			})
			r.confirm(conf)
			eachGuarded(func(up string) { waitGone(t, configMaps, ns, up) })
		}))
	}
}

// TestGuardForgetsWhatItAllowed: inputs that change all the time, each at its own time, are not one change.
func TestGuardForgetsWhatItAllowed(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) +
			"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: self.spec.anything.of, missing: Allow}]\n"
		start(t, testkit.Config(t), conf).ready()
		eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}, anything: {of: of-`+up+`}}`)) })
		eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
		for i := range guardedWidgets {
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-"+named(i)+"}, data: {drop: 'yes'}}")
			waitGone(t, configMaps, ns, named(i))
			deleted := time.Now()
			testkit.Eventually(t, patience, func() (bool, string) { return time.Since(deleted) > 20*time.Second, "time passes" })
		}
	})
}

// A reload after which upstreams fail to render that were rendered before waits, whatever guard allows: what fails is named. One that
// failed before does not count.
func TestGuardHoldsRenderFailures(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name) // less than guard.minimum, so that no deletion would be held
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("good", `{data: {key: value}}`))
		testkit.Apply(t, ns, widget("bad", `{}`))
		waitCondition(t, widgets, ns, "good", "Ready", "True")
		waitCondition(t, widgets, ns, "bad", "Ready", "False")
		r.waitError(r.ObjectsReady, []string{"operator " + name + ": 1 of 2 upstreams are not Ready: RenderFailed 1"})
		r.mustBeReady()

		needsMore := strings.Replace(conf, "data: {{ .spec.data }}", `data: {key: "{{ .spec.data.more }}"}`, 1)
		r.reloadTo(needsMore)
		waitState(t, name, "GuardWaiting")
		says := "1 upstream that the active config renders would be RenderFailed without confirmation: " + ns + "/good (config: RenderFailed: "
		r.waitSays(says, ".spec.data.more")
		waitData(t, ns, "good", "key", "value")
		r.mustBeReady()

		r.confirm(needsMore)
		waitState(t, name, "Running")
		r.waitError(r.ObjectsReady, []string{"RenderFailed 2"})

		r.reloadTo(strings.Replace(conf, "data: {{ .spec.data }}", "data: {{ .spec.data | default dict }}", 1)) // fewer fail: it does not wait
		waitCondition(t, widgets, ns, "bad", "Ready", "True")
	})
}

// TestGuardSaysWhatItHolds: an upstream that guard holds says so, once, also when it is edited, and no more once it continues. What the
// config has forgotten stays recorded.
func TestGuardSaysWhatItHolds(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"shared\"', missing: Allow}]\n"
		conf = replaceOnce(t, conf, fill("  pause: {annotation: NAME.example.com/paused}\n", ns, name), "")
		const more = "  - {name: note, apiVersion: v1, kind: Secret, template: 'metadata: {name: {{ .metadata.name }}}'}\n"
		counter := testkit.NewCounter()
		r := start(t, counter.Wrap(testkit.Config(t)), strings.Replace(conf, "conventions:\n", more+"conventions:\n", 1)).ready()
		applyGuarded(t, ns)
		r.reloadTo(conf)
		recorded := func() string { return fmt.Sprint(testkit.Get(t, widgets, ns, named(0)).Object["status"]) }
		testkit.Eventually(t, patience, func() (bool, string) { return strings.Contains(recorded(), "Leftover"), recorded() })
		says := func(i int, held bool) {
			testkit.Eventually(t, patience, func() (bool, string) {
				status, _, message := condition(testkit.Find(t, widgets, ns, named(i)), "Ready")
				return status == "True" && strings.HasPrefix(message, "held: guard") == held, status + ": " + message
			})
		}
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {drop: 'yes'}}")
		for i := range guardedWidgets {
			says(i, true)
		}
		testkit.Apply(t, ns, widget(named(0), `{data: {key: other}}`))
		bubble.Quiet(t, counter)
		if !strings.Contains(recorded(), "Leftover") {
			t.Errorf("what the config has forgotten is not recorded any more: %s", recorded())
		}
		edited := testkit.Find(t, widgets, ns, named(0))
		if seen, _, _ := unstructured.NestedInt64(edited.Object, "status", "observedGeneration"); seen == edited.GetGeneration() {
			t.Errorf("the status is of generation %d, which nobody acted on", seen)
		}
		r.confirm(conf)
		for i := range guardedWidgets {
			waitGone(t, configMaps, ns, named(i))
			says(i, false)
		}
	})
}
