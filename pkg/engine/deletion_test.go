package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// A broken template or rule holds no deletion, and neither does a restart in the middle of it.
func TestDeletionNeedsNoTemplate(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
		waitData(t, other, "a", "key", "value")
		r.halt()
		testkit.Delete(t, widgets, ns, "a")
		broken := strings.Replace(conf, "data: {{ .spec.data }}", `data: {{ fail "broken" }}`, 1) + "validate: [{rule: \"false\", message: nothing is valid}]\n"
		start(t, testkit.Config(t), broken).ready()
		waitGone(t, configMaps, other, "a")
		waitGone(t, widgets, ns, "a")
	})
}

// What somebody else made under the name is not ours to delete.
func TestDeletionSparesOthers(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
		waitData(t, other, "a", "key", "value")
		r.halt()
		testkit.Delete(t, configMaps, other, "a")
		testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: theirs}}`)
		testkit.Delete(t, widgets, ns, "a")
		start(t, testkit.Config(t), conf).ready()
		waitGone(t, widgets, ns, "a")
		waitData(t, other, "a", "key", "theirs")
	})
}

// A finalizer of somebody else keeps the upstream; ours goes, and nothing is applied any more.
func TestDeletedUpstreamIsNotApplied(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startMade(t, ns, fill(widgetConfig, ns, name))
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"elsewhere.example.com/hold"}) })
		testkit.Delete(t, widgets, ns, "a")
		settle(t, counter)
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"}}`)
		atMostWrites(t, counter, 0, "an upstream that is being deleted was applied for")
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		waitGone(t, widgets, ns, "a")
	})
}

func TestTerminatingDownstreamIsWaitedFor(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		startMade(t, ns, fill(widgetConfig, ns, name))
		old := testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"elsewhere.example.com/hold"}) })
		testkit.Delete(t, configMaps, ns, "a")
		waitCondition(t, widgets, ns, "a", "Ready", "False") // it is known to go: of two watches, neither need be the first to tell
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		readyIs(t, widgets, ns, "a", "False", "Waiting", "")
		waitData(t, ns, "a", "key", "value")
		testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		cm := waitData(t, ns, "a", "key", "new")
		if cm.GetUID() == old.GetUID() {
			t.Error("it is the old object")
		}
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// An object that lost the labels that the watch selects by while nothing could be done about it is not forgotten.
func TestStrippedLabelsAreNotForgotten(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, patch string }{
		{"paused", `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`},
		{"unwanted", `{"spec":{"exposed":true}}`},
		{"moved", `{"spec":{"namespace":"NS"}}`},
	} {
		t.Run(row.name, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf := with(elsewhere(fill(widgetConfig, ns, name), other, ns), "when: '!self.spec.?exposed.orValue(false)'")
			_, faults := startFaulty(t, conf)
			applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
			waitData(t, other, "a", "key", "value")
			refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
			testkit.Patch(t, configMaps, other, "a", "somebody", `{"metadata":{"labels":{"`+name+`.example.com/managed":null}}}`)
			testkit.Eventually(t, patience, func() (bool, string) { return refusal.Hits() > 0, "not tried" })
			testkit.Patch(t, widgets, ns, "a", "somebody", fill(row.patch, ns, name))
			testkit.Eventually(t, patience, func() (bool, string) {
				u := testkit.Get(t, widgets, ns, "a")
				observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
				_, reason, message := condition(u, "Ready")
				return observed == u.GetGeneration() && (row.name != "paused" || strings.HasPrefix(message, "paused: ")), "Ready is " + reason + ": " + message
			})
			deleteAndWait(t, widgets, ns, "a")
			waitGone(t, configMaps, other, "a")
		}))
	}
}

// What was made and could neither be recorded nor seen by the watch goes with its upstream all the same.
func TestUnrecordedAndUnseen(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"answered", "answer lost"} {
		t.Run(row, spacedTwice(func(t *testing.T, ns, other, name string) {
			_, faults := startFaulty(t, elsewhere(fill(widgetConfig, ns, name), other, ns))
			faults.Drop(testkit.On("WATCH", "configmaps"))
			faults.Cut(testkit.On("WATCH", "configmaps"))
			faults.Drop(testkit.On("LIST", "configmaps"))
			faults.Answer(403, testkit.On("PATCH", "widgets/status"))
			if row == "answer lost" {
				faults.Lose(testkit.On("PATCH", "configmaps"))
			}
			testkit.Apply(t, ns, widget("a", `{namespace: `+other+`, data: {key: value}}`))
			waitData(t, other, "a", "key", "value")
			deleteAndWait(t, widgets, ns, "a")
			waitGone(t, configMaps, other, "a")
		}))
	}
}
