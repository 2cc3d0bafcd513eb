package engine

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

func refNamed(name string) operator.Ref { return operator.Ref{Name: name} }

// TestReconciledOnce: what was queued once is handed to a worker once, however its turn and the queue meet.
func TestReconciledOnce(t *testing.T) {
	t.Parallel()
	const upstreams, workers = 20_000, 10
	s := &session{queue: priorityqueue.New[operator.Ref]("")}
	slots, began, handed := make(chan struct{}, workers), map[operator.Ref]int{}, 0
	var working sync.WaitGroup
	go func() {
		for i := range upstreams {
			s.Add(informers.PriorityReaders, 0, refNamed(fmt.Sprint(i)))
		}
	}()
	for len(began) < upstreams || s.queue.Len() > 0 {
		slots <- struct{}{}
		ref, _ := s.next()
		began[ref]++
		handed++
		working.Go(func() {
			defer func() { <-slots }()
			runtime.Gosched()
			s.queue.Done(ref)
		})
	}
	working.Wait()
	s.queue.ShutDown()
	must.Same(t, upstreams, handed, upstreams, "upstreams were handed to a worker", "times")
}

// A mistake of this program in one reconciliation ends that look and nothing else.
func TestPanicIsSurvived(t *testing.T) {
	s := &session{operator: &runner{name: t.Name(), log: logr.Discard()}, reconciler: &reconcile.Reconciler{}} // without a pipeline every reconciliation fails
	must.Same(t, afterPanic, s.reconcileRecovering(t.Context(), operator.Ref{Name: "a"}), "it is looked at again after")
}
