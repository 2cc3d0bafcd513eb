package engine_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// An object that somebody deletes and keeps by a finalizer stays in force, so what they change of it is repaired until it is gone, and
// then it is made again. At rest that costs nothing.
func TestTerminatingIsRepaired(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, policy, change string
		stopped, left          bool
	}{
		{reason: "a value is changed", change: `{"data":{"key":"bad"}}`},
		{reason: "a value is removed", change: `{"data":{"key":null}}`},
		{reason: "its marks are removed, too", change: `{"data":{"key":"bad"},"metadata":{"annotations":null,"ownerReferences":null}}`},
		{reason: "while no process runs", change: `{"data":{"key":"bad"}}`, stopped: true},
		{reason: "drift is only reported", policy: "    drift: {policy: Report}\n", change: `{"data":{"key":"bad"}}`, left: true},
		{reason: "it is only created", policy: "    updatePolicy: CreateOnly\n", change: `{"data":{"key":"bad"}}`, left: true},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name)
			conf = replaceOnce(t, conf, "    # downstream\n", row.policy)
			operator, counter := startCounted(t, conf)
			applyReady(t, ns, "a", `{data: {key: value}}`)
			made := waitData(t, ns, "a", "key", "value")
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":["a.example.com/hold"]}}`)
			testkit.Delete(t, configMaps, ns, "a")
			const says = "is being deleted and is recreated once it is gone; finalizers hold it: a.example.com/hold"
			eventuallyCondition(t, ns, "a", "False", "Waiting", says)
			if row.stopped {
				operator.halt()
			}
			testkit.Patch(t, configMaps, ns, "a", "somebody", row.change)
			if row.stopped {
				start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			}
			if row.left {
				quiet(t, counter)
				waitData(t, ns, "a", "key", "bad")
			} else {
				waitData(t, ns, "a", "key", "value")
			}
			eventuallyCondition(t, ns, "a", "False", "Waiting", says)
			quiet(t, counter)
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":null}}`)
			waitMadeAgain(t, made)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

// waitMadeAgain waits until there is another ConfigMap of that name, and fails if its data are others.
func waitMadeAgain(t *testing.T, before *unstructured.Unstructured) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		u := testkit.Find(t, configMaps, before.GetNamespace(), before.GetName())
		if u == nil || u.GetUID() == before.GetUID() {
			return false, "it is not made again"
		}
		if have, want := fmt.Sprint(u.Object["data"]), fmt.Sprint(before.Object["data"]); have != want {
			t.Errorf("it is made again with %s, want %s", have, want)
		}
		return true, ""
	})
}
