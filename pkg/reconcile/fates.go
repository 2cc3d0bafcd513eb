package reconcile

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// checkTerminating reads the terminating objects that the cache has not shown for a while: the watch may have shown their end before the
// response came, or they have lost its labels.
func (r *reconciliation) checkTerminating(ctx context.Context) {
	for _, u := range r.UnshownTerminating() {
		if r.Began.Before(u.Until) {
			continue
		}
		at := operator.RefOf(u.Live)
		live, err := r.readLive(ctx, u.Downstream, at)
		switch {
		case err != nil:
			r.fail(r.outcomeOf(u.Downstream, at), err)
			r.Memory.NoteDeleting(u.Downstream, u.Live, r.Began)
		case live == nil || live.UID != u.Live.UID:
			r.Memory.NoteGone(u.Live.UID, r.Began)
		default:
			r.Memory.NoteDeleting(u.Downstream, live, r.Began)
		}
	}
}
