package testkit

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Patience is the maximum wait for an expected event. It usually comes at once; on a very busy machine it may take this long,
// and only a failing test waits for all of it.
const Patience = 2 * time.Minute

// A condition is checked every pollInterval at first, and less often if it takes long, to leave the processors to others.
const (
	pollInterval = 20 * time.Millisecond
	maxInterval  = 200 * time.Millisecond
)

// Eventually checks the condition until it is true; after the timeout it fails the test with the last reason. The condition
// runs in the test's goroutine, so it may itself fail the test.
func Eventually(t testing.TB, timeout time.Duration, condition func() (ok bool, why string)) {
	t.Helper()
	begin := time.Now()
	for {
		ok, why := condition()
		if ok {
			return
		}
		passed := time.Since(begin)
		if passed > timeout {
			t.Fatalf("after %s still not: %s", timeout, why)
		}
		select {
		case <-time.After(min(max(pollInterval, passed/20), maxInterval)):
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %s", why)
		}
	}
}

// leases is the resource of Leases.
var leases = schema.GroupVersionResource{Group: coordinationv1.GroupName, Version: "v1", Resource: "leases"}

// Lag stores an object, waits until a watch delivers it, and returns how long that took: a measure, on a machine that may be
// busy, for the time after which something would have happened.
func Lag(t testing.TB) time.Duration {
	t.Helper()
	begin := time.Now()
	client, name := shared(t).dynamic.Resource(leases).Namespace(metav1.NamespaceDefault), Unique(t)
	watch, err := client.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	object := Parse(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "+name+"}}")
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-watch.ResultChan():
	case <-ctx.Done():
		t.Fatal("a watch does not tell of what was stored")
	}
	took := time.Since(begin)
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return took
}
