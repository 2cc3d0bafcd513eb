package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// observing is a config that writes nothing.
func observing(conf string) string {
	return strings.Replace(conf, "kind: Operator\n", "kind: Operator\nmode: Observe\n", 1)
}

// writes lists every request except reads, dry runs included.
func writes(c *testkit.Counter) []testkit.Request {
	return c.Requests(func(r testkit.Request) bool {
		switch r.Verb {
		case "GET", "LIST", "WATCH":
			return false
		}
		return r.Resource != "" && r.Resource != "leases"
	})
}

// onlyStatus waits until no more requests come, and fails if one wrote anything but a status.
func onlyStatus(t *testing.T, c *testkit.Counter) {
	t.Helper()
	quiet(t, c)
	for _, w := range writes(c) {
		if w.Key() != writeStatus {
			t.Errorf("a request that writes: %v", w)
		}
	}
}

// shadowed is a config that only has the condition Shadow.
func shadowed(t *testing.T, conf string) string {
	t.Helper()
	return replaceOnce(t, conf, "{ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}", "{ready: Shadow}")
}

// waitShadow waits until Shadow of a Widget has that reason, and a message with that text.
func waitShadow(t *testing.T, ns, object, want, text string) {
	t.Helper()
	waitThat(t, widgets, ns, object, func(u *obj) bool {
		status, reason, message := condition(u, "Shadow")
		return status == "False" && reason == want && strings.Contains(message, text)
	})
}

// waitObserved waits until one object is counted in that state.
func waitObserved(t *testing.T, name, state string, n float64) {
	t.Helper()
	waitMetric(t, n, "corollary_objects", name, "state", state)
}

// Nothing is written, whatever happens: no object, finalizer, event or status, and no dry run.
func TestObserveWritesNothing(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := strings.NewReplacer("  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}\n  downstreams: .status.downstreams\n", "  enabled: false\n",
			"events: None", "events: All").Replace(elsewhere(with(fill(widgetConfig, ns, name), "updatePolicy: Recreate"), other, ns))
		r := start(t, testkit.Config(t), conf).ready()
		for _, w := range []string{"drifted", "changed", "renamed", "deleted", "gone"} {
			testkit.Apply(t, ns, widget(w, `{namespace: `+other+`, data: {key: value}}`))
			waitData(t, other, w, "key", "value")
		}
		r.halt()
		counter := testkit.NewCounter()
		r = start(t, counter.Wrap(testkit.Config(t)), observing(conf)).ready()
		waitState(t, name, "Observing")
		waitObserved(t, name, "InSync", 5)

		testkit.Apply(t, ns, widget("new", `{namespace: `+other+`, data: {key: value}}`))
		waitObserved(t, name, "Create", 1)
		testkit.Patch(t, configMaps, other, "drifted", "somebody", `{"data":{"key":"theirs"}}`)
		waitObserved(t, name, "Repair", 1)
		testkit.Patch(t, widgets, ns, "changed", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		waitObserved(t, name, "Update", 1)
		testkit.Patch(t, widgets, ns, "renamed", "somebody", `{"spec":{"namespace":"`+ns+`"}}`)
		testkit.Delete(t, configMaps, other, "gone")
		waitObserved(t, name, "Create", 3)
		testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}`)
		testkit.Apply(t, ns, widget("taken", `{namespace: `+other+`, data: {key: value}}`))
		waitObserved(t, name, "Conflict", 1)
		testkit.Delete(t, widgets, ns, "deleted")
		r.reloadTo(withKey(observing(conf), "key", "new"))
		waitObserved(t, name, "InSync", 0)
		quiet(t, counter)
		if list := writes(counter); len(list) > 0 {
			t.Errorf("requests that write: %v", list)
		}
		metricIs(t, 5, "corollary_outcomes_total", name)
		waitData(t, other, "deleted", "key", "value")
		waitData(t, other, "drifted", "key", "theirs")
		if up := testkit.Find(t, widgets, ns, "deleted"); up == nil || len(up.GetFinalizers()) != 1 {
			t.Error("the finalizer was taken off")
		}
		testkit.Patch(t, widgets, ns, "deleted", "test", `{"metadata":{"finalizers":null}}`)
	})
}

// Where the status is ours, it alone is written: it says what exists, and what would be done. Back in Enforce nothing
// is applied again, and what happened meanwhile is made good.
func TestObserveReports(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(fill(widgetConfig, ns, name), "owner: {", "owner: {reference: false, ", 1)
		r, counter := startMade(t, ns, conf)
		applyReady(t, ns, "b", `{data: {key: value}}`)
		settle(t, counter)
		r.reloadTo(observing(conf))
		waitState(t, name, "Observing")
		testkit.Apply(t, ns, widget("c", `{data: {key: value}}`))
		up := readyIs(t, widgets, ns, "c", "False", "Observed", "")
		if _, _, message := condition(up, "Ready"); message != "config: would be created: "+ns+"/c does not exist" {
			t.Errorf("it says %s", message)
		}
		conditionIs(t, up, "Reconciling", "")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"theirs"}}`)
		up = waitsFor(t, widgets, ns, "a", "Observed", "would be repaired", "would change .data.key (last written by somebody)")
		if ids := downstreamsOf(up); ids["config"]["uid"] != string(testkit.Get(t, configMaps, ns, "a").GetUID()) {
			t.Errorf("what stands is no longer recorded: %v", ids)
		}
		testkit.Delete(t, widgets, ns, "b")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		waitCondition(t, widgets, ns, "a", "Ready", "False")
		onlyStatus(t, counter)
		counter.Reset()
		r.reloadTo(conf)
		waitState(t, name, "Running")
		waitData(t, ns, "a", "key", "new")
		for _, object := range []string{"a", "c"} {
			waitCondition(t, widgets, ns, object, "Ready", "True")
		}
		bothGone(t, ns, ns, "b")
		exactly(t, counter, 2, "one apply of each", keyed(writeDownstream))
	})
}

// While the operator that it will replace is running, it reports for each object whether it would change it, and what.
// What that operator marked, and may not be adopted, is a conflict: the message says what it takes. Then it takes over.
func TestObserveWithAnotherOperator(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		stop := sync.OnceFunc(startHandwritten(t, testkit.Config(t), ns))
		defer stop()
		testkit.Apply(t, ns, widget("same", `{data: {key: value}}`))
		testkit.Apply(t, ns, widget("other", `{data: {key: value}, exposed: true}`))
		for _, object := range []string{"same", "other"} {
			waitData(t, ns, object, "key", "value")
		}
		theirs := filepath.Base(os.Args[0]) // where no field manager is given, it is the program's name
		conf := shadowed(t, replaceOnce(t, fill(widgetConfig, ns, name), "data: {{ .spec.data }}", `data: {key: {{ if .spec.exposed }}new{{ else }}value{{ end }}}`))
		r, counter := startCounted(t, observing(conf))
		waitShadow(t, ns, "same", "Conflict", "adoptionPolicy: IfUnowned")
		recordsNothing(t, testkit.Get(t, widgets, ns, "same"))
		conf = with(conf, "adoptionPolicy: IfUnowned", "adopt: {fieldManagers: ["+theirs+"]}")
		r.reloadTo(observing(conf))
		waitShadow(t, ns, "same", "Observed", "only our marks would change")
		waitShadow(t, ns, "other", "Observed", "would change .data.key (last written by "+theirs+")")
		testkit.Patch(t, widgets, ns, "same", "somebody", `{"spec":{"data":{"key":"changed"}}}`)
		waitShadow(t, ns, "same", "Observed", "would change .data.key")
		onlyStatus(t, counter)
		stop()
		r.reloadTo(conf)
		waitData(t, ns, "other", "key", "new")
		cm := waitData(t, ns, "same", "key", "value")
		for _, e := range cm.GetManagedFields() {
			if e.Manager != name {
				t.Errorf("a field belongs to %s", e.Manager)
			}
		}
	})
}

// The status that the previous manager wrote is left alone: while this config observes, that operator may still be
// running.
func TestObserveLeavesThePreviousStatus(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		startMade(t, ns, conf)
		counter := testkit.NewCounter()
		shadow := shadowed(t, replaceOnce(t, renamed(name).in(conf, name), "metadata: {name: "+name+"}", "metadata: {name: "+name+"-shadow}"))
		start(t, counter.Wrap(testkit.Config(t)), observing(shadow)).ready()
		waitThat(t, widgets, ns, "a", func(u *obj) bool { status, _, _ := condition(u, "Shadow"); return status != "" })
		// Both write .status.downstreams, in words of their own: neither undoes the other forever.
		never(t, func() (bool, string) {
			status, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			return status != "True", "Ready is " + status + ": " + reason + ": " + message
		})
		<-time.After(3 * time.Second)
		if n := counter.Snapshot()[writeStatus]; n > 12 {
			t.Errorf("the status was written %d times: %v", n, counter.Snapshot())
		}
	})
}

// handwritten is an operator as one would write it in Go for Widget → ConfigMap, which a config observes before it
// replaces it.
type handwritten struct{ client.Client }

func anyWidget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Widget"}}
}

// Reconcile is the usual: create or update the ConfigMap, and update the status where it changed.
func (h *handwritten) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	w := anyWidget()
	if err := h.Get(ctx, r.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.GetNamespace(), Name: w.GetName()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, h, cm, func() error {
		cm.Data, _, _ = unstructured.NestedStringMap(w.Object, "spec", "data")
		return controllerutil.SetControllerReference(w, cm, h.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	if observed, _, _ := unstructured.NestedInt64(w.Object, "status", "observedGeneration"); observed == w.GetGeneration() {
		return reconcile.Result{}, nil
	}
	w.Object["status"] = map[string]any{"observedGeneration": w.GetGeneration(), "conditions": []any{map[string]any{"type": "Ready", "status": "True",
		"reason": "Ready", "message": "", "observedGeneration": w.GetGeneration(), "lastTransitionTime": "2026-01-02T03:04:05Z"}}}
	return reconcile.Result{}, h.Status().Update(ctx, w)
}

// startHandwritten starts the operator for the objects of a namespace.
func startHandwritten(t testing.TB, cfg *rest.Config, ns string) (stop func()) {
	mgr, err := manager.New(cfg, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logFor(t),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 4, SkipNameValidation: new(true)}})
	if err != nil {
		t.Fatal(err)
	}
	err = builder.ControllerManagedBy(mgr).Named("handwritten").For(anyWidget()).Owns(&corev1.ConfigMap{}).Complete(&handwritten{mgr.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
