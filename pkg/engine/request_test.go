package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// requested is a config with an annotation to ask by, and delays that no test waits for.
func requested(ns, name, change, to string) string {
	text := strings.Replace(fill(widgetConfig, ns, name), "retry: {minDelay: 1s, maxDelay: 10s}", "retry: {minDelay: 5m, maxDelay: 1h}", 1)
	text = strings.Replace(text, "  pause: {", "  reconcile: {annotation: "+name+".example.com/now}\n  pause: {", 1)
	return strings.Replace(text, change, to, 1)
}

func ask(t *testing.T, ns, name, operator, value string) {
	t.Helper()
	testkit.Patch(t, widgets, ns, name, "test", `{"metadata": {"annotations": {"`+operator+`.example.com/now": "`+value+`"}}}`)
}

// TestRequestedReconcile: a requested reconcile does not wait for the delay after a failure, and ends the backoff from another writer. It takes
// milliseconds, and a busy machine more; by itself it would be done after five minutes.
func TestRequestedReconcile(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		asked := func(value string) {
			t.Helper()
			begun := time.Now()
			ask(t, ns, "w", name, value)
			waitData(t, ns, "w", "a", "b")
			if took := time.Since(begun); took > 2*patience {
				t.Errorf("it took %s", took)
			}
		}
		faults := testkit.NewFaults()
		refused := faults.Answer(500, testkit.On("PATCH", "configmaps"))
		start(t, faults.Wrap(testkit.Config(t)), requested(ns, name, "", "")).ready()
		testkit.Apply(t, ns, widget("w", "{data: {a: b}}"))
		waitCondition(t, widgets, ns, "w", "Ready", "False")
		refused.Off()
		asked("1")
		waitCondition(t, widgets, ns, "w", "Ready", "True")
		for range 3 {
			testkit.Patch(t, configMaps, ns, "w", "rival", `{"data": {"a": "x"}}`)
			waitData(t, ns, "w", "a", "b")
		}
		testkit.Patch(t, configMaps, ns, "w", "rival", `{"data": {"a": "x"}}`)
		waitRefused(t, ns, "w", "Contested")
		asked("2")
	})
}

// TestRequestedReconcileRepeatsTheProbe: the probe is sent again, although the object has not changed.
func TestRequestedReconcileRepeatsTheProbe(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		_, counter := startCounted(t, requested(ns, "verdict", "    # downstream", "    drift: {policy: Report}"))
		applyReady(t, ns, "w", "{data: {a: b}}")
		probes := func() int {
			return len(counter.Requests(func(r testkit.Request) bool { return r.DryRun }))
		}
		testkit.Patch(t, configMaps, ns, "w", "rival", `{"data": {"a": "x"}}`)
		testkit.Eventually(t, patience, func() (bool, string) { return probes() == 1, "nothing was asked" })
		ask(t, ns, "w", "verdict", "1")
		testkit.Eventually(t, patience, func() (bool, string) { return probes() == 2, "nothing was asked again" })
	})
}
