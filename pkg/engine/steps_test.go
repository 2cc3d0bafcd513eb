package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// inSpace is inMemory for a test that needs a namespace and a name for an operator.
func inSpace(t *testing.T, test func(t *testing.T, ns, name string)) {
	t.Helper()
	inMemory(t, func(t *testing.T) { test(t, testkit.Namespace(t), testkit.Unique(t)) })
}

// spaced is inSpace for t.Run.
func spaced(test func(t *testing.T, ns, name string)) func(*testing.T) {
	return func(t *testing.T) { inSpace(t, test) }
}

// inSpaces is inSpace with another namespace.
func inSpaces(t *testing.T, test func(t *testing.T, ns, other, name string)) {
	t.Helper()
	inSpace(t, func(t *testing.T, ns, name string) { test(t, ns, testkit.Namespace(t), name) })
}

// spacedTwice is inSpaces for t.Run.
func spacedTwice(test func(t *testing.T, ns, other, name string)) func(*testing.T) {
	return func(t *testing.T) { inSpaces(t, test) }
}

// startCounted runs a config and counts its requests.
func startCounted(t testing.TB, conf ...string) (*running, *testkit.Counter) {
	t.Helper()
	counter := testkit.NewCounter()
	return start(t, counter.Wrap(testkit.Config(t)), conf...).ready(), counter
}

// restart stops the engine and runs a config, whose requests counter counts again if it is not nil.
func (r *running) restart(counter *testkit.Counter, conf string) *running {
	r.t.Helper()
	r.halt()
	cfg := testkit.Config(r.t)
	if counter != nil {
		counter.Reset()
		cfg = counter.Wrap(cfg)
	}
	return start(r.t, cfg, conf).ready()
}

// startFaulty runs a config whose requests may fail.
func startFaulty(t testing.TB, conf string) (*running, *testkit.Faults) {
	t.Helper()
	faults := testkit.NewFaults()
	return start(t, faults.Wrap(testkit.Config(t)), conf).ready(), faults
}

// startWidget runs a config until its Widget a is ready.
func startWidget(t *testing.T, ns string, conf ...string) *running {
	t.Helper()
	r := start(t, testkit.Config(t), conf...).ready()
	applyReady(t, ns, "a", `{data: {key: value}}`)
	return r
}

// startMade is made with a counter of its own.
func startMade(t *testing.T, ns, conf string) (*running, *testkit.Counter) {
	t.Helper()
	counter := testkit.NewCounter()
	return made(t, conf, ns, counter), counter
}

// applyReady applies a Widget and waits until it is ready.
func applyReady(t *testing.T, ns, name, spec string) *unstructured.Unstructured {
	t.Helper()
	testkit.Apply(t, ns, widget(name, spec))
	return waitCondition(t, widgets, ns, name, "Ready", "True")
}

// readyIs waits until Ready has a status for the current generation, and fails if the reason or the message is another
// one then.
func readyIs(t *testing.T, gvr schema.GroupVersionResource, ns, name, status, reason, text string) *unstructured.Unstructured {
	t.Helper()
	u := waitCondition(t, gvr, ns, name, "Ready", status)
	if _, have, message := condition(u, "Ready"); have != reason || !strings.Contains(message, text) {
		t.Errorf("%s: Ready says %s: %s, want %s: %s", name, have, message, reason, text)
	}
	return u
}

// deleteAndWait deletes an object and waits until it is gone.
func deleteAndWait(t *testing.T, gvr schema.GroupVersionResource, ns, name string) {
	t.Helper()
	testkit.Delete(t, gvr, ns, name)
	waitGone(t, gvr, ns, name)
}

// deleteBoth deletes a Widget and waits until it and its ConfigMap are gone.
func deleteBoth(t *testing.T, ns, at, name string) {
	t.Helper()
	testkit.Delete(t, widgets, ns, name)
	bothGone(t, ns, at, name)
}

// bothGone waits until a Widget and its ConfigMap are gone.
func bothGone(t *testing.T, ns, at, name string) {
	t.Helper()
	waitGone(t, widgets, ns, name)
	waitGone(t, configMaps, at, name)
}

// mustBeAbsent fails if an object exists.
func mustBeAbsent(t *testing.T, gvr schema.GroupVersionResource, ns, name, why string) {
	t.Helper()
	if testkit.Find(t, gvr, ns, name) != nil {
		t.Errorf("%s %s exists: %s", gvr.Resource, name, why)
	}
}

// mustExist fails if an object does not exist.
func mustExist(t *testing.T, gvr schema.GroupVersionResource, ns, name, why string) {
	t.Helper()
	if testkit.Find(t, gvr, ns, name) == nil {
		t.Errorf("%s %s does not exist: %s", gvr.Resource, name, why)
	}
}

// settle waits until no more requests come, and forgets them.
func settle(t *testing.T, c *testkit.Counter) {
	t.Helper()
	quiet(t, c)
	c.Reset()
}

// atMostRequests waits until no more requests come, and fails if there were more than that.
func atMostRequests(t *testing.T, c *testkit.Counter, most int, what string) {
	t.Helper()
	quiet(t, c)
	if n := c.Total(); n > most {
		t.Errorf("%s: %d requests, want %d at most: %v", what, n, most, c.Snapshot())
	}
}

// atMostWrites is atMostRequests for those that write.
func atMostWrites(t *testing.T, c *testkit.Counter, most int, what string) {
	t.Helper()
	quiet(t, c)
	if n := c.Mutating(); n > most {
		t.Errorf("%s: %d writes, want %d at most: %v", what, n, most, c.Snapshot())
	}
}

// metricIs fails if a metric of an operator has another value.
func metricIs(t *testing.T, want float64, name, operator string, labels ...string) {
	t.Helper()
	if have := metric(t, name, operator, labels...); have != want {
		t.Errorf("%s %v is %v, want %v", name, labels, have, want)
	}
}

// reloadTo changes the first config.
func (r *running) reloadTo(conf string) {
	r.t.Helper()
	r.write("a.yaml", conf)
	r.reload()
}

// confirm changes the first config to one that confirms what waits; it has no guard yet.
func (r *running) confirm(conf string) {
	r.t.Helper()
	r.reloadTo(conf + "guard: {confirmed: " + r.digest() + "}\n")
}

// eachGuarded repeats what is done for one of the Widgets of a guard's test.
func eachGuarded(do func(up string)) {
	for i := range guardedWidgets {
		do(named(i))
	}
}

// applyGuarded applies the Widgets of a guard's test and waits until they are ready.
func applyGuarded(t *testing.T, ns string) {
	t.Helper()
	eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}}`)) })
	eachGuarded(func(up string) { waitCondition(t, widgets, ns, up, "Ready", "True") })
}

// mustBeReady fails if the process is not ready now.
func (r *running) mustBeReady() {
	r.t.Helper()
	if err := r.Ready(nil); err != nil {
		r.t.Errorf("not ready: %v", err)
	}
}

// exactly waits until no more requests come, and fails if there were more or fewer than that; conditions are those of
// Counter.Total.
func exactly(t *testing.T, c *testkit.Counter, want int, what string, conditions ...func(testkit.Request) bool) {
	t.Helper()
	quiet(t, c)
	if n := c.Total(conditions...); n != want {
		t.Errorf("%s: %d requests, want %d: %v", what, n, want, c.Snapshot())
	}
}

// isRepaired tampers with a key of a ConfigMap as someone else, and waits until it has its value again.
func isRepaired(t *testing.T, ns, name, key, want string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, name, "somebody", `{"data":{"`+key+`":"tampered"}}`)
	waitData(t, ns, name, key, want)
}

// ownerReference is a reference to an object.
func ownerReference(u *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}
}
