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
			existing := func() (n int) {
				for i := range guardedWidgets {
					if testkit.Find(t, configMaps, ns, named(i)) != nil {
						n++
					}
				}
				return n
			}
			const allowed = 5 // guard.minimum
			for i := range guardedWidgets {
				testkit.Delete(t, gadgets, ns, named(i))
				if !row.all && i < allowed {
					waitGone(t, configMaps, ns, named(i))
				}
			}
			waitState(t, name, "GuardWaiting")
			never(t, func() (bool, string) {
				n := existing()
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

// TestGuardSaysWhatItHolds: an upstream that guard holds says so, once, also when it is edited, and no more once it continues.
func TestGuardSaysWhatItHolds(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"shared\"', missing: Allow}]\n"
		r, counter := startCounted(t, conf)
		applyGuarded(t, ns)
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
