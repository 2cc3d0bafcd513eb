package reconcile

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/render"
)

// Upstreams whose rules or templates need much share a few places of the process, so that whoever writes them can occupy
// neither all workers nor all memory: one that finds no place gives its worker back and waits.

// NewRenderSlots makes the places of a process: half its processors stay free for upstreams that need little.
func NewRenderSlots() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) }

var errNoSlot = errors.New("waiting: other expensive upstreams are being rendered")

// acquireSlot takes a place, which the reconciliation keeps until it ends. Before the reconciliation has begun, it does not wait for one.
func (r *reconciliation) acquireSlot() error {
	if r.RenderSlots == nil || r.hasSlot {
		return nil
	}
	r.record.large = true
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

// releaseSlot gives the place back.
func (r *reconciliation) releaseSlot() {
	if r.hasSlot {
		<-r.RenderSlots
		r.hasSlot = false
	}
}

// noSlotDelay is how long an upstream waits that found no place.
func noSlotDelay() time.Duration { return 500*time.Millisecond + rand.N(500*time.Millisecond) }

// tookTooLong tells whether a desired state failed for lack of time, which is tried again: the process may have been busy.
func tookTooLong(w *pipeline.Desired) bool {
	return slices.ContainsFunc(w.Downstreams, func(d pipeline.DesiredDownstream) bool { return errors.Is(d.Err, render.ErrTime) })
}

// forgetSlow makes the next reconciliation render again what took too long.
func (r *record) forgetSlow(now time.Time) {
	if r.slowUntil.IsZero() || now.Before(r.slowUntil) {
		return
	}
	r.slowUntil, r.version, r.digest = time.Time{}, "", drift.Sum{}
}
