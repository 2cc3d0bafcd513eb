package engine_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestGeneratedIsNotRecreatedWhileHeld: a Secret with generated values and a finalizer of others is not deleted to be
// recreated, also if the watch does not show the finalizer yet: with its process, the values would be lost. The status says
// what it waits for, over a restart, and without requests; once the finalizer is gone, it is recreated with its values.
func TestGeneratedIsNotRecreatedWhileHeld(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"the watch shows the finalizer", "the watch is late"} {
		t.Run(reason, spaced(func(t *testing.T, ns, name string) {
			conf := generatedConfig(t, ns, name, "updatePolicy: Recreate")
			conf = replaceOnce(t, conf, "      stringData:", "      immutable: true\n      stringData:")
			hold := func(finalizers ...string) {
				testkit.Update(t, secretKind, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(finalizers) })
			}
			r, faults := startFaulty(t, conf)
			applyKey(t, ns, "a", "old")
			password, pin := generatedOf(t, ns, "a")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if reason == "the watch shows the finalizer" {
				hold("example.com/hold")
				testkit.Apply(t, ns, widget("a", `{data: {key: new}}`))
			} else {
				kept := faults.Answer(403, testkit.On("DELETE", "secrets"))
				testkit.Apply(t, ns, widget("a", `{data: {key: new}}`))
				waitsFor(t, widgets, ns, "a", "Denied", "deleting")
				faults.Answer(500, testkit.On("WATCH", "secrets"))
				faults.Answer(500, testkit.On("LIST", "secrets"))
				faults.Cut(testkit.On("WATCH", "secrets"))
				hold("example.com/hold")
				kept.Off()
			}
			const why = "the change is to an immutable field"
			waitsFor(t, widgets, ns, "a", "Waiting", why, "finalizers hold it: example.com/hold")
			held := func() {
				t.Helper()
				if u := testkit.Get(t, secretKind, ns, "a"); u.GetDeletionTimestamp() != nil {
					t.Fatal("it is being deleted")
				}
			}
			held()
			counter := testkit.NewCounter()
			r.restart(counter, conf)
			waitsFor(t, widgets, ns, "a", "Waiting", why)
			settle(t, counter)
			quiet(t, counter)
			held()
			generatedIs(t, ns, "a", password, pin)
			hold()
			secretText(t, ns, "a", "key", is("new"))
			generatedIs(t, ns, "a", password, pin)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}
