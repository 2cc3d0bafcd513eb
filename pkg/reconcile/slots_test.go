package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/reconcile/before"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

func TestPlaces(t *testing.T) {
	s := &Reconciler{Slots: Slots{SlotWait: time.Minute, RenderSlots: make(chan struct{}, 1)}}
	first, second := &reconciliation{Reconciler: s, Job: &before.Job{Writer: &write.Writer{Reader: &read.Reader{State: &observe.State{Memory: &memory.Upstream{}}}}}}, &reconciliation{Reconciler: s, Job: &before.Job{Writer: &write.Writer{Reader: &read.Reader{State: &observe.State{Memory: &memory.Upstream{}}}}}}
	for range 2 {
		if err := first.acquireSlot(); err != nil {
			t.Fatalf("a free place is not given, or twice: %v", err)
		}
	}
	if err := second.acquireSlot(); !errors.Is(err, errNoSlot) || !second.noSlot || !second.Memory.Steps.IsExpensive {
		t.Errorf("with no place left: %v, %+v", err, second)
	}
	first.releaseSlot()
	first.releaseSlot()
	if second.acquireSlot() != nil || !second.hasSlot {
		t.Error("the place that was given back is not given again")
	}
	begun, done := &reconciliation{Reconciler: s, Job: &before.Job{Writer: &write.Writer{Reader: &read.Reader{State: &observe.State{Memory: &memory.Upstream{}}}}}, begun: true}, make(chan error)
	go func() { done <- begun.acquireSlot() }()
	second.releaseSlot()
	if err := <-done; err != nil {
		t.Errorf("a look that has begun does not wait for its place: %v", err)
	}
	if len(s.RenderSlots) != 1 {
		t.Errorf("%d places are taken, one look has one", len(s.RenderSlots))
	}
	free := &reconciliation{Reconciler: &Reconciler{}, Job: &before.Job{Writer: &write.Writer{Reader: &read.Reader{State: &observe.State{Memory: &memory.Upstream{}}}}}}
	for range 2 {
		if err := free.acquireSlot(); err != nil {
			t.Errorf("a survey has as many places as it needs: %v", err)
		}
	}
}
