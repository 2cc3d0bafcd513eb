package testkit_test

import (
	"errors"
	"maps"
	"net/http"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// gadgets is a small CRD.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.tools.example.com
spec:
  group: tools.example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
            status: {type: object, properties: {size: {type: integer}}}
`

var (
	gadgetsGVR = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "gadgets"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}
`

func TestObjects(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		ns := testkit.Namespace(t)
		if found := testkit.Find(t, configMaps, ns, "settings"); found != nil {
			t.Fatalf("found %v before it was made", found)
		}
		testkit.Apply(t, ns, configMap)
		testkit.Update(t, configMaps, ns, "settings", func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"seen": "yes"})
		})
		testkit.Patch(t, configMaps, ns, "settings", "someone", `{"data":{"shape":"round"}}`)
		got := testkit.Get(t, configMaps, ns, "settings")
		data, _, _ := unstructured.NestedStringMap(got.Object, "data")
		if data["color"] != "green" || data["shape"] != "round" || got.GetLabels()["seen"] != "yes" {
			t.Errorf("the object is %v", got.Object)
		}
		if n := len(testkit.List(t, configMaps, ns, "seen=yes")); n != 1 {
			t.Errorf("%d objects have the label, not one", n)
		}
		testkit.Delete(t, configMaps, ns, "settings")
		testkit.Delete(t, configMaps, ns, "settings") // gone already, which is not an error
		if found := testkit.Find(t, configMaps, ns, "settings"); found != nil {
			t.Errorf("found %v after it was deleted", found)
		}
	})
}

func TestInstallCRDs(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		testkit.InstallCRDs(t, gadgets)
		ns := testkit.Namespace(t)
		gadget := testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 3}}")
		if size, _, _ := unstructured.NestedInt64(gadget.Object, "spec", "size"); size != 3 {
			t.Errorf("the gadget is %v", gadget.Object)
		}
		testkit.Patch(t, gadgetsGVR, ns, "a", "someone", `{"status":{"size":4}}`, "status")
		if size, _, _ := unstructured.NestedInt64(testkit.Get(t, gadgetsGVR, ns, "a").Object, "status", "size"); size != 4 {
			t.Errorf("the status holds size %d", size)
		}
	})
}

// use sends one request of each kind, an apply twice.
func use(t *testing.T, client dynamic.Interface, ns string) {
	t.Helper()
	resource := client.Resource(configMaps).Namespace(ns)
	object := testkit.Parse(t, configMap)
	force := metav1.ApplyOptions{FieldManager: "someone", Force: true}
	must.Get(resource.Apply(t.Context(), "settings", object, force)).In(t)
	force.DryRun = []string{metav1.DryRunAll}
	must.Get(resource.Apply(t.Context(), "settings", object, force)).In(t)
	must.Get(resource.List(t.Context(), metav1.ListOptions{})).In(t)
	if _, err := resource.Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	watcher := must.Get(resource.Watch(t.Context(), metav1.ListOptions{})).In(t)
	watcher.Stop()
}

// used is the requests of use.
var used = map[string]int{"PATCH configmaps": 2, "LIST configmaps": 1, "GET configmaps": 1, "WATCH configmaps": 1}

func TestCounter(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		counter := testkit.NewCounter()
		client := newClient(t, counter.Wrap(testkit.Config(t)))
		use(t, client, testkit.Namespace(t))
		if got := counter.Snapshot(); !maps.Equal(got, used) {
			t.Errorf("counted %v instead of %v", got, used)
		}
		if total, mutating := counter.Total(), counter.Mutating(); total != 4 || mutating != 1 {
			t.Errorf("counted %d requests, %d of them mutating, instead of 4 and 1", total, mutating)
		}
		first := counter.Requests()[0]
		if !first.Apply || first.DryRun || first.Name != "settings" || first.Code != http.StatusCreated {
			t.Errorf("the first request is recorded as %+v", first)
		}
		counter.Reset()
		if got := counter.Snapshot(); len(got) != 0 {
			t.Errorf("counted %v after a reset", got)
		}
	})
}

func TestFaults(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		ns := testkit.Namespace(t)
		faults, counter := testkit.NewFaults(), testkit.NewCounter()
		client := newClient(t, counter.Wrap(faults.Wrap(testkit.Config(t)))).Resource(configMaps).Namespace(ns)
		apply := func() error {
			_, err := client.Apply(t.Context(), "settings", testkit.Parse(t, configMap), metav1.ApplyOptions{FieldManager: "someone"})
			return err
		}
		answers := map[int]func(error) bool{
			http.StatusForbidden: apierrors.IsForbidden, http.StatusNotFound: apierrors.IsNotFound,
			http.StatusConflict: apierrors.IsConflict, http.StatusUnprocessableEntity: apierrors.IsInvalid,
			http.StatusInternalServerError: apierrors.IsInternalError,
		}
		for code, expected := range answers {
			fault := faults.Answer(code, testkit.On("PATCH", "configmaps"))
			if err := apply(); !expected(err) {
				t.Errorf("a fault of %d gives: %v", code, err)
			}
			if fault.Hits() != 1 {
				t.Errorf("a fault of %d was hit %d times", code, fault.Hits())
			}
			fault.Off()
		}
		drop := faults.Drop(testkit.On("PATCH", ""))
		if err := apply(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a dropped request gives: %v", err)
		}
		drop.Off()
		if testkit.Find(t, configMaps, ns, "settings") != nil {
			t.Error("a request that failed has reached the API server")
		}
		lose := faults.Lose(testkit.On("PATCH", ""))
		if err := apply(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a request whose answer is lost gives: %v", err)
		}
		lose.Off()
		testkit.Get(t, configMaps, ns, "settings")
		if err := apply(); err != nil {
			t.Errorf("with every fault off: %v", err)
		}
		if sent := counter.Total(); sent != len(answers)+3 {
			t.Errorf("counted %d requests instead of %d", sent, len(answers)+3)
		}
	})
}

func TestThrottled(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		faults := testkit.NewFaults()
		client := newClient(t, faults.Wrap(testkit.Config(t))).Resource(configMaps).Namespace(testkit.Namespace(t))
		fault := faults.Answer(http.StatusTooManyRequests, testkit.On("LIST", ""))
		done := make(chan error, 1)
		go func() {
			_, err := client.List(t.Context(), metav1.ListOptions{})
			done <- err
		}()
		// client-go waits for Retry-After and retries
		testkit.Eventually(t, testkit.Patience, func() (bool, string) { return fault.Hits() > 1, "the request was not tried again" })
		fault.Off()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCutWatch(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		ns := testkit.Namespace(t)
		faults := testkit.NewFaults()
		client := newClient(t, faults.Wrap(testkit.Config(t)))
		watcher := must.Get(client.Resource(configMaps).Namespace(ns).Watch(t.Context(), metav1.ListOptions{})).In(t)
		defer watcher.Stop()
		testkit.Apply(t, ns, configMap)
		if event := <-watcher.ResultChan(); event.Type != watch.Added {
			t.Fatalf("the watch begins with %v", event)
		}
		if broken := faults.Cut(testkit.On("WATCH", "secrets")); broken != 0 {
			t.Errorf("%d watches were cut that do not match", broken)
		}
		if broken := faults.Cut(testkit.On("WATCH", "configmaps")); broken != 1 {
			t.Errorf("%d watches were cut instead of one", broken)
		}
		for range watcher.ResultChan() { // ends, possibly with an error event
		}
	})
}

func newClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client := must.Get(dynamic.NewForConfig(config)).In(t)
	return client
}
