package reconcile

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/corollary-dev/corollary/pkg/logging"
)

// Upstreams whose rules or templates are expensive share a few slots of the process, so that their authors can occupy neither
// all workers nor all memory: one without a slot gives its worker back and waits.

// Slots limit how many upstreams that need much time or memory are rendered at once.
type Slots struct {
	RenderSlots chan struct{} // nil: no limit
	// SlotWait is how long one waits for a slot.
	SlotWait time.Duration
}

// NewRenderSlots makes the slots of a process: half its processors stay free for other upstreams.
func NewRenderSlots() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) }

var errNoSlot = errors.New("waiting: other expensive upstreams are being rendered")

// acquireSlot takes a slot, which the reconciliation keeps until it ends. It waits for one only after the reconciliation has
// begun.
func (r *reconciliation) acquireSlot() error {
	if r.RenderSlots == nil || r.hasSlot {
		return nil
	}
	r.Memory.Steps.IsExpensive = true
	select {
	case r.RenderSlots <- struct{}{}:
		r.hasSlot = true
		return nil
	default:
	}
	if r.begun {
		select {
		case r.RenderSlots <- struct{}{}:
			r.hasSlot = true
			return nil
		case <-time.After(r.SlotWait):
		}
	}
	r.noSlot = true
	return errNoSlot
}

// releaseSlot gives the slot back.
func (r *reconciliation) releaseSlot() {
	if r.hasSlot {
		<-r.RenderSlots
		r.hasSlot = false
	}
}

// noSlotDelay is how long an upstream without a slot waits.
func noSlotDelay() time.Duration { return 500*time.Millisecond + rand.N(500*time.Millisecond) }

// noteSlow notes that expressions or templates got no time to end, and returns after how long to try again. The upstream then needs a slot:
// its author must not occupy all workers.
func (r *reconciliation) noteSlow(what string) time.Duration {
	slow := &r.Memory.Notes.Edit().Slow
	if r.Memory.Steps.IsExpensive = true; !slow.HasFailed() {
		logging.Warn(r.Log, "expressions or templates took too long, will retry", "upstream", r.Ref.String(), "incomplete", what)
	}
	return r.delay(slow)
}
