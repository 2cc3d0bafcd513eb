package attempt

import (
	"errors"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

func TestPlaces(t *testing.T) {
	slots, m := Slots{SlotWait: time.Minute, RenderSlots: make(chan struct{}, 1)}, &memory.Upstream{}
	first, second := &slot{slots: slots}, &slot{slots: slots}
	for range 2 {
		if err := first.acquire(&memory.Upstream{}); err != nil {
			t.Fatalf("a free place is not given, or twice: %v", err)
		}
	}
	if err := second.acquire(m); !errors.Is(err, errNoSlot) || !second.NoSlot || !m.Steps.IsExpensive {
		t.Errorf("with no place left: %v, %+v", err, second)
	}
	first.ReleaseSlot()
	first.ReleaseSlot()
	if second.acquire(m) != nil || !second.hasSlot {
		t.Error("the place that was given back is not given again")
	}
	begun, done := &slot{slots: slots, begun: true}, make(chan error)
	go func() { done <- begun.acquire(&memory.Upstream{}) }()
	second.ReleaseSlot()
	if err := <-done; err != nil {
		t.Errorf("a look that has begun does not wait for its place: %v", err)
	}
	if len(slots.RenderSlots) != 1 {
		t.Errorf("%d places are taken, one look has one", len(slots.RenderSlots))
	}
	free := &slot{}
	for range 2 {
		if err := free.acquire(m); err != nil {
			t.Errorf("a survey has as many places as it needs: %v", err)
		}
	}
}
