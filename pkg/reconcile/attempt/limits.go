package attempt

import (
	"context"
	"errors"
	"fmt"
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
	// Recreations is whose turn it is to recreate an object; nil: no limit.
	Recreations *Turn
}

// Turn lets one attempt of the process at a time recreate objects. Otherwise a dry run of each of several would
// find that a quota has room for one more, and of those that are deleted then, only one could be created again.
type Turn struct {
	taken chan struct{}
	ended time.Time // when the last one ended; guarded by taken
}

// NewTurn makes the turn of a process.
func NewTurn() *Turn { return &Turn{taken: make(chan struct{}, 1)} }

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
	// hasTurn: it is its turn to recreate objects.
	hasTurn bool
}

// takeTurn waits until the attempt may recreate objects, which it may until it ends. isFresh is true if no other one
// has ended since began: what was asked of the API server since then still holds.
func (s *slot) takeTurn(ctx context.Context, began time.Time) (isFresh bool, err error) {
	t := s.slots.Recreations
	if t == nil || s.hasTurn {
		return true, nil
	}
	select {
	case t.taken <- struct{}{}:
		s.hasTurn = true
		return began.After(t.ended), nil
	case <-ctx.Done():
		return false, fmt.Errorf("waiting until another object is recreated: %w", ctx.Err())
	}
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

// ReleaseSlot gives the slot and the turn back.
func (s *slot) ReleaseSlot() {
	if s.hasTurn {
		s.slots.Recreations.ended = time.Now()
		<-s.slots.Recreations.taken
		s.hasTurn = false
	}
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
