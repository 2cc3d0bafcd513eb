package shards_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// edited is a set of two processes whose Leases someone edits.
type edited struct {
	a, b   *process
	leases coordination.LeaseInterface
}

func startEdited(t *testing.T) edited {
	t.Helper()
	namespace := testkit.Namespace(t)
	e := edited{leases: kubernetes.NewForConfigOrDie(testkit.Config(t)).CoordinationV1().Leases(namespace)}
	e.a, e.b = start(t, namespace, number), start(t, namespace, number)
	await(t, "two processes", []int{6, 6}, e.a, e.b)
	e.settle(t)
	return e
}

// settle waits until the Leases say that all shards are loaded.
func (e edited) settle(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() (bool, string) {
		for k := range number {
			if lease := e.get(t, k); lease == nil || len(lease.Annotations) > 0 || lease.Labels["set/shards"] != "12" {
				return false, fmt.Sprintf("shard %d: %+v", k, lease)
			}
		}
		return true, ""
	})
}

func (e edited) get(t *testing.T, k int) *coordinationv1.Lease {
	t.Helper()
	lease, err := e.leases.Get(t.Context(), fmt.Sprint("set-shard-", k), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return lease
}

// edit edits the Lease of a shard, or of a process, whoever writes it at the same time.
func (e edited) edit(t *testing.T, name string, how func(lease *coordinationv1.Lease)) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() (bool, string) {
		lease, err := e.leases.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			how(lease)
			_, err = e.leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// of is a shard that the process holds.
func (p *process) of() int { return p.holds()[0] }

// until waits for a condition, and fails if two processes hold a shard before.
func (e edited) until(t *testing.T, why string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		for _, k := range e.a.holds() {
			if e.b.Has(k) && e.b.Process().MayWrite() == nil && e.a.Has(k) {
				t.Fatalf("%s: shard %d has two holders", why, k)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come about", why)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestEditedLeases: whatever someone does to the Leases by hand, no shard has two holders, and each has one again.
func TestEditedLeases(t *testing.T) {
	t.Parallel()
	name := func(who func(e edited) string) func(e edited, lease *coordinationv1.Lease) {
		return func(e edited, lease *coordinationv1.Lease) {
			holder := who(e)
			lease.Spec.HolderIdentity = &holder
		}
	}
	for reason, change := range map[string]func(e edited, lease *coordinationv1.Lease){
		"another_process": name(func(e edited) string { return e.b.Self() }),
		"unknown_process": name(func(edited) string { return "nobody we know" }),
		"no_holder":       name(func(edited) string { return "" }),
		"without_spec":    func(_ edited, lease *coordinationv1.Lease) { lease.Spec = coordinationv1.LeaseSpec{} },
		"without_a_label": func(_ edited, lease *coordinationv1.Lease) { lease.Labels = nil },
		"without_anything": func(_ edited, lease *coordinationv1.Lease) {
			lease.Labels, lease.Spec = nil, coordinationv1.LeaseSpec{}
		},
		"greatest_numbers": func(_ edited, lease *coordinationv1.Lease) {
			nobody, most, late := "", int32(math.MaxInt32), metav1.NewMicroTime(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &nobody, LeaseDurationSeconds: &most, LeaseTransitions: &most, AcquireTime: &late,
				RenewTime: &late}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			bubble.Run(t, nil, func(t *testing.T) {
				e := startEdited(t)
				k := e.a.of()
				e.a.deaf.Store(true) // it does not see the edit at once
				e.edit(t, fmt.Sprint("set-shard-", k), func(lease *coordinationv1.Lease) { change(e, lease) })
				heard := time.Now().Add(1500 * time.Millisecond)
				e.until(t, "while its holder does not see that", func() bool { return time.Now().After(heard) })
				e.a.deaf.Store(false)
				e.until(t, "its holder stops", func() bool { return !e.a.Has(k) })
				e.until(t, "somebody takes it", func() bool { return e.a.Has(k) || e.b.Has(k) })
				await(t, "all have their share", []int{6, 6}, e.a, e.b)
				e.settle(t)
			})
		})
	}
}

// TestDeletedLeases: a Lease of a shard or of a process that someone deletes.
func TestDeletedLeases(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		e := startEdited(t)
		k := e.a.of()
		must.Do(t, e.leases.Delete(t.Context(), fmt.Sprint("set-shard-", k), metav1.DeleteOptions{}))
		e.until(t, "its holder stops", func() bool { return !e.a.Has(k) })
		e.until(t, "somebody takes it", func() bool { return e.a.Has(k) || e.b.Has(k) })
		await(t, "all have their share", []int{6, 6}, e.a, e.b)

		process := "set-process-" + e.a.Self()
		must.Do(t, e.leases.Delete(t.Context(), process, metav1.DeleteOptions{}))
		e.until(t, "it makes its own Lease again", func() bool {
			_, err := e.leases.Get(t.Context(), process, metav1.GetOptions{})
			return err == nil
		})
		e.edit(t, process, func(lease *coordinationv1.Lease) { lease.Labels = nil })
		later := time.Now().Add(8 * time.Second) // longer than a lease duration
		e.until(t, "the Lease of a process was deleted, and lost its label", func() bool { return time.Now().After(later) })
		await(t, "nothing has moved", []int{6, 6}, e.a, e.b)
	})
}

// TestNonsenseOnLeases: what is written on the Lease of a shard that is held changes nothing, and goes.
func TestNonsenseOnLeases(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		e := startEdited(t)
		k := e.a.of()
		for _, annotations := range []map[string]string{
			{"set/loading": "no", "set/deaths": "many", "set/group": "-1"},
			{"set/deaths": "99999999999999999999"},
			{"set/deaths": "7", "set/group": "1"},
			{},
		} {
			e.edit(t, fmt.Sprint("set-shard-", k), func(lease *coordinationv1.Lease) {
				lease.Annotations, lease.Labels["set/shards"] = annotations, "nonsense"
				if len(annotations) > 0 {
					lease.Labels["set/shards"] = "12"
				}
			})
			e.until(t, "the nonsense goes", func() bool {
				lease := e.get(t, k)
				return lease != nil && len(lease.Annotations) == 0 && lease.Labels["set/shards"] == "12"
			})
			if !e.a.Has(k) {
				t.Errorf("%v: its holder has lost it", annotations)
			}
		}
		await(t, "nothing has moved", []int{6, 6}, e.a, e.b)
	})
}
