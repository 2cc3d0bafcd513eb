package reconcile

import (
	"context"
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// checkTerminating reads the terminating objects that the cache has not shown for a while: the watch may have shown their end before the
// response came, or they have lost its labels.
func (r *reconciliation) checkTerminating(ctx context.Context) {
	for _, u := range r.unshownTerminating() {
		if r.now.Before(u.Until) {
			continue
		}
		at := operator.RefOf(u.Live)
		live, err := r.readLive(ctx, u.Downstream, at)
		switch {
		case err != nil:
			r.fail(r.outcomeOf(u.Downstream, at), err)
			r.record.NoteDeleting(u.Downstream, u.Live, r.now)
		case live == nil || live.UID != u.Live.UID:
			r.record.NoteGone(u.Live.UID, r.now)
		default:
			r.record.NoteDeleting(u.Downstream, live, r.now)
		}
	}
}

// unshownTerminating are the responses about terminating objects that the cache does not show as such.
func (r *reconciliation) unshownTerminating() []memory.Unplaced {
	return slices.DeleteFunc(r.record.Terminating(), func(u memory.Unplaced) bool {
		cached := r.Cache.Live(u.Downstream, operator.RefOf(u.Live))
		return cached != nil && cached.UID == u.Live.UID && cached.Deleting
	})
}

// trustTerminating has checkTerminating called in time.
func (r *reconciliation) trustTerminating() {
	for _, u := range r.unshownTerminating() {
		r.trustUntil(u.Until)
	}
}
