package attempt

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// Upstreams whose rules or templates are expensive share a few slots of the process, so that their authors can occupy
// neither all workers nor all memory: one without a slot gives its worker back and waits.

// Slots limit how many upstreams that need much time or memory are rendered at once.
type Slots struct {
	RenderSlots chan struct{} // nil: no limit
	// SlotWait is how long one waits for a slot.
	SlotWait time.Duration
}

// NewRenderSlots makes the slots of a process: half its processors stay free for other upstreams.
func NewRenderSlots() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) }

var errNoSlot = errors.New("waiting: other expensive upstreams are being rendered")

// slot is the render slot of one attempt.
type slot struct {
	slots Slots
	// hasSlot: the attempt holds one of the slots. begun is true once an attempt without a slot would lose work, so that
	// it waits for one.
	hasSlot, begun bool
	// NoSlot: the attempt found no render slot.
	NoSlot bool
}

// acquire takes a slot, which the attempt keeps until it ends. It waits for one only after the attempt has begun.
func (s *slot) acquire(m *memory.Upstream) error {
	if s.slots.RenderSlots == nil || s.hasSlot {
		return nil
	}
	m.Steps.IsExpensive = true
	select {
	case s.slots.RenderSlots <- struct{}{}:
		s.hasSlot = true
		return nil
	default:
	}
	if s.begun {
		select {
		case s.slots.RenderSlots <- struct{}{}:
			s.hasSlot = true
			return nil
		case <-time.After(s.slots.SlotWait):
		}
	}
	s.NoSlot = true
	return errNoSlot
}

// ReleaseSlot gives the slot back.
func (s *slot) ReleaseSlot() {
	if s.hasSlot {
		<-s.slots.RenderSlots
		s.hasSlot = false
	}
}

// NoSlotDelay is how long an upstream without a slot waits.
func NoSlotDelay() time.Duration { return 500*time.Millisecond + rand.N(500*time.Millisecond) }

// budget is the time for the actions of one attempt.
type budget struct {
	// until is when no further action begins; zero for no limit. acts counts those that have begun.
	until time.Time
	acts  int
	// OutOfTime is true once an action did not begin: the next reconcile goes on, after other upstreams.
	OutOfTime bool
}

// hasTime reports whether an action may begin. One begins in each reconcile, whatever the time.
func (b *budget) hasTime() bool {
	b.OutOfTime = b.OutOfTime || b.acts > 0 && !b.until.IsZero() && time.Now().After(b.until)
	return !b.OutOfTime
}
