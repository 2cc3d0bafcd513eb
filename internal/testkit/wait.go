package testkit

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Patience is the maximum wait for an expected event, on a machine that is not busy: see Patient. Only a failing test
// waits for all of it.
const Patience = 2 * time.Minute

// Patient is a wait, longer by as much as the machine is busy: a process that shares two processors with forty has a
// twentieth of one.
func Patient(wait time.Duration) time.Duration {
	var load float64 // of the last minute
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load) // 0 where it is not known
	}
	const usual = 2 // processes for each processor
	return time.Duration(float64(wait) * max(1, load/float64(usual*runtime.NumCPU())))
}

// A condition is checked every pollInterval at first, and less often if it takes long, to leave the processors to
// others.
const (
	pollInterval = 20 * time.Millisecond
	maxInterval  = 200 * time.Millisecond
)

// Eventually checks the condition until it is true; after the timeout, by Patient, it fails the test with the last
// reason. The condition runs in the test's goroutine, so it may itself fail the test.
func Eventually(t testing.TB, timeout time.Duration, condition func() (ok bool, why string)) {
	t.Helper()
	begin := time.Now()
	for {
		ok, why := condition()
		if ok {
			return
		}
		passed := time.Since(begin)
		if passed > timeout && passed > Patient(timeout) {
			t.Fatalf("after %s still not: %s", passed.Round(time.Second), why)
		}
		select {
		case <-time.After(min(max(pollInterval, passed/20), maxInterval)):
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %s", why)
		}
	}
}

// Closed waits until a channel is closed.
func Closed(t testing.TB, ended <-chan struct{}, otherwise func() string) {
	t.Helper()
	Eventually(t, Patience, func() (bool, string) {
		select {
		case <-ended:
			return true, ""
		default:
			return false, otherwise()
		}
	})
}

// leases is the resource of Leases.
var leases = schema.GroupVersionResource{Group: coordinationv1.GroupName, Version: "v1", Resource: "leases"}

// Lag stores an object, waits until a watch delivers it, and returns how long that took: a measure, on a machine that
// may be busy, for the time after which something would have happened.
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
	<-watch.ResultChan()
	took := time.Since(begin)
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return took
}
