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

// NewPlaces makes the places of a process: half its processors stay free for upstreams that need little.
func NewPlaces() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) }

var errNoPlace = errors.New("other upstreams that need much are being rendered: this one waits")

// larger takes a place, which the look keeps until it ends. Before the look has begun, it does not wait for one.
func (l *look) larger() error {
	if l.Places == nil || l.placed {
		return nil
	}
	l.record.large = true
	select {
	case l.Places <- struct{}{}:
		l.placed = true
		return nil
	default:
	}
	if l.begun {
		select {
		case l.Places <- struct{}{}:
			l.placed = true
			return nil
		case <-time.After(l.PlaceWait):
		}
	}
	l.crowded = true
	return errNoPlace
}

// leave gives the place back.
func (l *look) leave() {
	if l.placed {
		<-l.Places
		l.placed = false
	}
}

// crowdedFor is how long an upstream waits that found no place.
func crowdedFor() time.Duration { return 500*time.Millisecond + rand.N(500*time.Millisecond) }

// tookTooLong tells whether a wish failed for lack of time, which is tried again: the process may have been busy.
func tookTooLong(w *pipeline.Wish) bool {
	return slices.ContainsFunc(w.Downstreams, func(d pipeline.DownstreamWish) bool { return errors.Is(d.Err, render.ErrTime) })
}

// forgetSlow makes the next look render again what took too long.
func (r *record) forgetSlow(now time.Time) {
	if r.slowUntil.IsZero() || now.Before(r.slowUntil) {
		return
	}
	r.slowUntil, r.version, r.digest = time.Time{}, "", drift.Sum{}
}
