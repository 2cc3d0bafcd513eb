//go:build controlplane

package testkit_test

import (
	"errors"
	"maps"
	"net/http"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// use sends one request of each kind, an apply twice.
func use(t *testing.T, client dynamic.Interface, ns string) {
	t.Helper()
	resource := client.Resource(configMaps).Namespace(ns)
	object := testkit.Parse(t, configMap)
	force := metav1.ApplyOptions{FieldManager: "someone", Force: true}
	if _, err := resource.Apply(t.Context(), "settings", object, force); err != nil {
		t.Fatal(err)
	}
	force.DryRun = []string{metav1.DryRunAll}
	if _, err := resource.Apply(t.Context(), "settings", object, force); err != nil {
		t.Fatal(err)
	}
	if _, err := resource.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := resource.Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	watcher, err := resource.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher.Stop()
}

// used is the requests of use.
var used = map[string]int{"PATCH configmaps": 2, "LIST configmaps": 1, "GET configmaps": 1, "WATCH configmaps": 1}

func TestCounter(t *testing.T) {
	t.Parallel()
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
}

func TestAudit(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	config := testkit.Config(t)
	config.UserAgent = testkit.Unique(t) + "/1"
	use(t, newClient(t, config), ns)
	testkit.Eventually(t, testkit.Patience, func() (bool, string) { // the watch is logged after it has begun
		got := map[string]int{}
		for _, request := range testkit.Audit(t, testkit.Agent(config.UserAgent)) {
			got[request.Key()]++
		}
		return maps.Equal(got, used), "the audit log does not hold exactly what was sent"
	})
	dry := testkit.Audit(t, testkit.Agent(config.UserAgent), func(r testkit.Request) bool { return r.DryRun })
	if len(dry) != 1 || dry[0].Mutating() || dry[0].Code != http.StatusOK || dry[0].Namespace != ns {
		t.Errorf("the dry run is logged as %+v", dry)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
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
}

func TestThrottled(t *testing.T) {
	t.Parallel()
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
}

func TestCutWatch(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	faults := testkit.NewFaults()
	client := newClient(t, faults.Wrap(testkit.Config(t)))
	watcher, err := client.Resource(configMaps).Namespace(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
}

func newClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
