package testkit

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Patience is how long to wait for what has to come. It comes within moments; this long it takes on a machine that does
// everything else at the same time, and nothing but a test that fails waits for the end of it.
const Patience = 2 * time.Minute

// A condition is looked at every pollInterval at first. One that takes long is
// looked at less often: whoever waits for seconds leaves the machine to others.
const (
	pollInterval = 20 * time.Millisecond
	maxInterval  = 200 * time.Millisecond
)

// Eventually looks at the condition until it holds; after the timeout it fails
// the test with the last reason why it did not. The condition runs in the
// test's goroutine, so it may itself fail the test.
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

// Lag stores an object, waits until a watch tells of it, and returns how long that
// took: the measure for a stretch of time after which something would have
// happened, on a machine that may be busy.
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
