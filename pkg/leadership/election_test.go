package leadership

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/corollary-dev/corollary/internal/must"
)

// slow are timings by which nothing happens while a test runs, however slow the machine is.
var slow = Timings{LeaseDuration: 3 * time.Hour, RenewDeadline: 2 * time.Hour, RetryPeriod: time.Hour}

// testElection is one about a Lease without an API server.
func testElection(client *fake.Clientset, once bool) *Election {
	o := Options{Namespace: "apps", Name: "lease", Timings: slow, Once: once, Log: logr.Discard()}
	return newElection(newLeases("apps", "lease", client.CoordinationV1(), client.CoordinationV1()), o, "self")
}

// leaseOf reads the Lease.
func leaseOf(t *testing.T, client *fake.Clientset) *coordinationv1.Lease {
	t.Helper()
	lease := must.Get(client.CoordinationV1().Leases("apps").Get(t.Context(), "lease", metav1.GetOptions{})).In(t)
	return lease
}

func holderOf(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	return ptr.Deref(leaseOf(t, client).Spec.HolderIdentity, "")
}

// renewedOnce returns when a leader has renewed the Lease that it took, which it does at once; the next time is an hour
// later.
func renewedOnce(e *Election) {
	for {
		e.mu.Lock()
		renewals, renewed := e.renewals, e.renewed
		e.mu.Unlock()
		if renewals >= 2 {
			return
		}
		<-renewed
	}
}

// TestRunHoldsTheLeaseWhileThereIsWork: not longer, and also where the caller is in a hurry; and it says how work
// ended. A loss in between is reported unless work is done: what happens to a Lease afterwards does not undo that. It
// is left to the next holder then.
func TestRunHoldsTheLeaseWhileThereIsWork(t *testing.T) {
	failed := errors.New("failed")
	for _, test := range []struct {
		hurry, taken bool
		ends         error
		lost         bool
		reason       string
	}{
		{false, false, nil, false, "work is done"},
		{false, false, failed, false, "work fails"},
		{true, false, failed, false, "work is told to end, and does"},
		{false, true, nil, false, "work is done, and another has taken the Lease"},
		{true, true, nil, true, "another has taken the Lease before work was told to end"},
	} {
		client, after := fake.NewClientset(), ""
		e := testElection(client, true)
		ctx, cancel := context.WithCancel(t.Context())
		err := e.Run(ctx, func(ctx context.Context) error {
			if !e.Wait(ctx) {
				t.Errorf("%s: it does not lead", test.reason)
			}
			if test.taken {
				renewedOnce(e)
				lease := leaseOf(t, client)
				after = "another"
				lease.Spec.HolderIdentity = &after
				must.Get(client.CoordinationV1().Leases("apps").Update(ctx, lease, metav1.UpdateOptions{})).In(t)
			}
			if test.hurry {
				cancel()
				<-ctx.Done()
			}
			if holder := holderOf(t, client); !test.taken && (holder != "self" || e.MayWrite() != nil) {
				t.Errorf("%s: %q holds the Lease while it works", test.reason, holder)
			}
			return test.ends
		})
		cancel()
		var lost *LostError
		if errors.As(err, &lost) != test.lost || !test.lost && !errors.Is(err, test.ends) || !test.taken && e.MayWrite() == nil {
			t.Errorf("%s: it ended with %v", test.reason, err)
		}
		must.Same(t, after, holderOf(t, client), test.reason, "holds the Lease in the end")
	}
}

// TestRunEndsWhereItIsDenied the Lease, if it came for one thing to do; else it waits for the rights.
func TestRunEndsWhereItIsDenied(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		for _, once := range []bool{true, false} {
			client := fake.NewClientset()
			ctx, cancel := context.WithCancel(t.Context())
			client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				if !once {
					cancel() // it would wait forever
				}
				return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "lease", errors.New("no right"))
			})
			err := testElection(client, once).Run(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			cancel()
			var denied *DeniedError
			if errors.As(err, &denied) != once || once && !apierrors.IsForbidden(err) || !once && !errors.Is(err, context.Canceled) {
				t.Errorf("refused to %s, once: %v, it ended with %v", verb, once, err)
			}
		}
	}
}

// TestStandbyReportsTheHolder whenever the holder changes.
func TestStandbyReportsTheHolder(t *testing.T) {
	var told []string
	s := &standby{self: "self", waiting: func(holder string, lasts time.Duration) { told = append(told, holder+" "+lasts.String()) }}
	for i, holder := range []string{"", "self", "another", "another", "", "third", "another"} {
		record := heldBy(holder)
		record.RenewTime = metav1.Unix(int64(i), 0)
		s.observe(&record)
	}
	if !s.sawLeader {
		t.Error("it has forgotten them")
	}
	if want := []string{"another 15s", "third 15s", "another 15s"}; !slices.Equal(told, want) {
		t.Errorf("it told of %q, want %q", told, want)
	}
}

// TestStandbyForOnceDoesNotWatch, so that it needs no right to.
func TestStandbyForOnceDoesNotWatch(t *testing.T) {
	client := fake.NewClientset()
	reads := 0
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		holder, lasts := "another", int32(3600)
		if reads++; reads == 3 {
			holder = ""
		}
		renewed := metav1.NewMicroTime(time.Unix(int64(reads), 0))
		return true, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts,
			RenewTime: &renewed}}, nil
	})
	client.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, errors.New("no right to watch")
	})
	e := testElection(client, true)
	e.standby.retry = time.Millisecond
	if free := e.standby.wait(t.Context()); !free || reads != 3 {
		t.Errorf("free: %v, after %d reads", free, reads)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("it does %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}
