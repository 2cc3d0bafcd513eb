package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// A paused upstream says that it is paused, not that guard holds it: it would not be changed anyway.
func TestPausedIsNotHeld(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"shared\"', missing: Allow}]\n"
		_, counter := startCounted(t, conf)
		for i := range guardedWidgets {
			testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
		}
		for i := range guardedWidgets {
			waitCondition(t, widgets, ns, named(i), "Ready", "True")
		}
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {drop: 'yes'}}")
		testkit.Patch(t, widgets, ns, named(0), "author", `{"metadata": {"annotations": {"`+name+`.example.com/paused": "true"}}}`)
		message := func(i int) string {
			_, _, message := condition(testkit.Find(t, widgets, ns, named(i)), "Ready")
			return message
		}
		testkit.Eventually(t, patience, func() (bool, string) { return strings.HasPrefix(message(1), "held: guard"), message(1) })
		bubble.Quiet(t, counter)
		if !strings.Contains(message(0), "paused") {
			t.Errorf("the paused one says %q", message(0))
		}
	})
}
