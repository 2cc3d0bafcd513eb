package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The object of an item that disappears is deleted, although an object of somebody else is in the way of another item, and a third one
// cannot be created. What takes the place of an item holds it as long as it cannot be created.
func TestForEachRemovesDespiteOthers(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer(`{name: "{{ .metadata.name }}-{{ item.name }}"}`, `{name: "{{ .metadata.name }}-{{ item.name }}", namespace: "{{ item.value }}"}`,
			"# downstream", "targetNamespaces: {from: Any}").Replace(fill(poolConfig, ns, name))
		testkit.Apply(t, ns, configMap("p-theirs", "x"))
		start(t, testkit.Config(t), conf).ready()
		exist := func(want ...string) {
			t.Helper()
			for i := range want {
				want[i] += "=" + ns
			}
			waitWorkers(t, ns, name, want...)
		}
		testkit.Apply(t, ns, pool("p", "a="+ns, "b="+ns, "c="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		exist("p-a", "p-b", "p-c")
		eventuallyPool(t, ns, "3 of 5")

		testkit.Apply(t, ns, pool("p", "b="+ns, "c="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		exist("p-b", "p-c")

		testkit.Apply(t, ns, pool("p", "b2=no-such-namespace", "c="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		eventuallyPool(t, ns, "p-b2")
		exist("p-b", "p-c")
		testkit.Apply(t, ns, pool("p", "b2=no-such-namespace", "theirs="+ns, "nowhere=no-such-namespace")) // p-b stays, p-c has no successor
		exist("p-b")
		testkit.Apply(t, ns, pool("p", "b2="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		exist("p-b2")
		deleteAndWait(t, pools, ns, "p")
		exist()
	})
}

// eventuallyPool waits until the Ready message of Pool p, which is not ready, has that text.
func eventuallyPool(t *testing.T, ns, text string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		status, reason, message := condition(testkit.Get(t, pools, ns, "p"), "Ready")
		return status == "False" && strings.Contains(message, text), reason + ": " + message
	})
}
