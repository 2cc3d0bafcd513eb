package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// noteDeleted remembers what the API server answered to the deletion of an object. A dry run shows what follows from it, once it is gone.
func (r *reconciliation) noteDeleted(o operator.Outcome, answer apply.Deletion) {
	r.noteRemoved(o)
	if answer.Gone || o.Live == nil || r.client.Dry() {
		r.record.NoteGone(o.UID, r.now)
		return
	}
	live := *o.Live
	if answer.Terminating != nil {
		if shown, err := r.Pipeline.Downstreams[o.Downstream].View.Live(answer.Terminating); err == nil {
			live = *shown
		}
	}
	live.Deleting = true
	r.record.NoteDeleting(o.Downstream, &live, r.now)
}

// noteReleased remembers an object that was released, as the API server returned it; nil: it is gone.
func (r *reconciliation) noteReleased(o operator.Outcome, obj *unstructured.Unstructured) error {
	r.noteRemoved(o)
	if obj == nil || r.client.Dry() {
		r.record.NoteGone(o.UID, r.now)
		return nil
	}
	live, err := r.Pipeline.Downstreams[o.Downstream].View.Live(obj)
	if err != nil {
		return err
	}
	r.record.NoteReleased(o.Downstream, live, r.now)
	return nil
}

// noteRemoved counts that an object was deleted or released, which does not belong to the upstream from now on.
func (r *reconciliation) noteRemoved(o operator.Outcome) {
	r.countItems(o.Downstream)
	r.removals.Write(memory.At(o.Downstream, o.Target), r.spacing(), r.now)
	if t := r.record.Object(o.Object); t.UID == o.UID {
		t.UID = "" // its absence is our own doing
		r.countWrite(o.Object, "")
	}
}

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
