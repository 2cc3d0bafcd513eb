package engine_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const waiting = "deletion: {wait: true}\n"

func holdFor(t *testing.T, ns, name string) {
	t.Helper()
	testkit.Update(t, configMaps, ns, name, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"elsewhere.example.com/hold"}) })
}

func letGo(t *testing.T, ns, name string) {
	t.Helper()
	testkit.Update(t, configMaps, ns, name, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
}

// The upstream stays until what follows from it is gone, also what an owner reference would clean up; and its status says
// what it waits for.
func TestDeletionWaits(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"same namespace", "elsewhere"} {
		t.Run(row, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf, at := fill(widgetConfig, ns, name), ns
			if row == "elsewhere" {
				conf, at = elsewhere(conf, other, ns), other
			}
			_, counter := startCounted(t, conf+waiting)
			applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
			holdFor(t, at, "a")
			quiet(t, counter)
			testkit.Delete(t, widgets, ns, "a")
			up := waitsFor(t, widgets, ns, "a", "Deleting", "ConfigMap "+at+"/a is terminating")
			conditionIs(t, up, "Reconciling", "True")
			if item := downstreamsOf(up)["config"]; item["state"] != "Delete" || item["uid"] == nil {
				t.Errorf("recorded is %v", item)
			}
			quiet(t, counter)
			if testkit.Find(t, widgets, ns, "a") == nil {
				t.Fatal("the upstream went first")
			}
			letGo(t, at, "a")
			waitGone(t, widgets, ns, "a")
			mustBeAbsent(t, configMaps, at, "a", "the upstream went first")

			applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
			settle(t, counter)
			deleteAndWait(t, widgets, ns, "a")
			mustBeAbsent(t, configMaps, at, "a", "the upstream went first")
			atMostRequests(t, counter, 4, "a deletion that waits")
		}))
	}
}

// What the watch has lost from sight is waited for all the same.
func TestDeletionWaitsForTheUnseen(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, fill(widgetConfig, ns, name)+waiting)
		applyReady(t, ns, "a", `{data: {key: value}}`)
		holdFor(t, ns, "a")
		refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"labels":{"`+name+`.example.com/managed":null}}}`)
		testkit.Eventually(t, patience, func() (bool, string) { return refusal.Hits() > 0, "not tried" })
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "Deleting", "ConfigMap "+ns+"/a")
		letGo(t, ns, "a")
		waitGone(t, widgets, ns, "a")
		mustBeAbsent(t, configMaps, ns, "a", "the upstream went first")
	})
}

// A config that comes to wait later gets its finalizer on what is in sync already, at one request for each upstream.
func TestFinalizerComesLater(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, added string }{{"wait", waiting}, {"before", beforeText}} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			r, counter := startMade(t, ns, fill(widgetConfig, ns, name))
			if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); len(f) > 0 {
				t.Fatalf("finalizers are %v", f)
			}
			r.halt()
			counter.Reset()
			start(t, counter.Wrap(testkit.Config(t)), fill(widgetConfig, ns, name)+row.added).ready()
			waitThat(t, widgets, ns, "a", func(u *obj) bool { return slices.Contains(u.GetFinalizers(), finalizerOf(name)) })
			exactly(t, counter, 1, "what is in sync", testkit.Request.Mutating)
		}))
	}
}

// A delete that the API server refuses is reported, and the upstream keeps its finalizer.
func TestRefusedDeleteIsReported(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: Warnings", 1)+waiting)
		applyReady(t, ns, "a", `{data: {key: value}}`)
		refusal := faults.Answer(403, testkit.On("DELETE", "configmaps"))
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "Denied", "deleting configmaps")
		waitEvent(t, ns, "a", "Denied", "config: ")
		stays(t, ns)
		refusal.Off()
		waitGone(t, widgets, ns, "a")
	})
}
