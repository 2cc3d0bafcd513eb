package read

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// FindUnseen reads objects that the cache does not show, and reports whether any was found.
func (r *Reader) FindUnseen(ctx context.Context) bool {
	r.Unread = nil
	found := r.findRecorded(ctx)
	return r.findMade(ctx) || found
}

// findRecorded is findUnseen for those that are remembered: the cache may lag, or they have lost the labels of the
// watch, or their kind is not watched. What they come after stays, also while nobody knows what is wanted of them. What
// is where it is wanted is met by the next create, if there is one.
func (r *Reader) findRecorded(ctx context.Context) (found bool) {
	recorded := r.Recorded()
	for _, w := range r.Witnesses(recorded) {
		k := operator.NoIndex
		if r.Selected {
			k = r.TargetAt(w.Downstream, w.At)
		}
		if r.isKnown(w.UID) || k >= 0 && r.isMet(recorded, k, w) {
			continue
		}
		if k >= 0 {
			w.Downstream = r.Memory.Desired().Objects[k].Downstream // in whose view it is read
		}
		if cached := r.Cache.Live(w.Downstream, w.At); cached != nil && cached.UID == w.UID {
			continue
		}
		switch live, ok := r.tryRead(ctx, w); {
		case !ok:
		case live == nil || !r.IsOwn(w.Downstream, live, w.UID):
			r.Memory.NoteAbsent(w.UID, live, r.Began)
		case k >= 0:
			r.Memory.Remember(k, live, r.Began)
			found = true
		default:
			r.Unseen, found = append(r.Unseen, operator.Owned{Downstream: w.Downstream, Live: live, Certain: !w.Guessed,
				Recorded: !w.Guessed}), true
			if !slices.ContainsFunc(r.Memory.Notes.Get().Left, memory.IsOf(w.UID)) {
				n := r.Memory.Notes.Edit()
				n.Left = append(n.Left, w) // the status may not record it any more once it records its successor
			}
		}
	}
	return found
}

// isMet reports whether the object of a witness, at the target of object k, is shown, or is met by the create that is
// due there. A paused upstream creates nothing; and where the status records another object for k, two exchange names,
// and what is known of both decides what a create may take.
func (r *Reader) isMet(recorded []status.Recorded, k int, w memory.Witness) bool {
	if shown, _ := r.LatestAt(k, w.At); shown != nil {
		return true
	}
	rec := r.RecordedAs(recorded, k)
	return !r.Pipeline.Paused(r.Upstream) && (rec == nil || rec.UID == w.UID)
}

// findMade is findUnseen for what this process tried to create, and may have created although no response came: no
// status need record it.
func (r *Reader) findMade(ctx context.Context) (found bool) {
	if r.Selected {
		return r.findMadeBefore(ctx)
	}
	made, err := r.readMade(ctx, r.FindLeftovers(nil, r.OwnedByDownstream()), r.Unseen, nil)
	if err != nil {
		r.FailUpstream("reading an object that may have been created", err)
		return false
	}
	found = len(made) > len(r.Unseen)
	r.Unseen = made
	return found
}

// findMadeBefore is findMade for places that are not targets any more. What is at a target is met by the next create.
func (r *Reader) findMadeBefore(ctx context.Context) (found bool) {
	if len(r.Memory.Notes.Get().Unconfirmed) == 0 {
		return false
	}
	owned := r.OwnedByDownstream()
	for _, m := range slices.Clone(r.Memory.Notes.Get().Unconfirmed) {
		isThere := func(live *drift.Live) bool { return live.Namespace == m.At.Namespace && live.Name == m.At.Name }
		if r.Memory.Desired().Unknown(m.Downstream) || r.TargetAt(m.Downstream, m.At) >= 0 ||
			slices.ContainsFunc(owned[m.Downstream], isThere) ||
			slices.ContainsFunc(r.Unseen, func(own operator.Owned) bool {
				return own.Downstream == m.Downstream && isThere(own.Live)
			}) {
			continue
		}
		switch live, ok := r.tryRead(ctx, memory.Witness{Place: m}); {
		case !ok:
		case live != nil && r.IsOwn(m.Downstream, live, ""):
			r.Unseen, found = append(r.Unseen, operator.Owned{Downstream: m.Downstream, Live: live, Certain: true,
				Recorded: true}), true
		default:
			r.Memory.ConfirmCreated(func(read memory.Place) bool { return read == m })
		}
	}
	return found
}

// isKnown reports whether an object is known to be gone, terminating or released, or was read.
func (r *Reader) isKnown(uid types.UID) bool {
	isIt := func(u memory.Unplaced) bool { return u.Live.UID == uid }
	return r.Memory.IsNotOurs(uid, r.Began) || slices.ContainsFunc(r.Memory.Terminating(), isIt) ||
		slices.ContainsFunc(r.Unseen, func(own operator.Owned) bool { return own.Live.UID == uid })
}

// CheckTerminating reads the terminating objects that the cache has not shown for a while: the watch may have shown
// their end before the response came, or they have lost its labels.
func (r *Reader) CheckTerminating(ctx context.Context) {
	for _, u := range r.UnshownTerminating() {
		if r.Began.Before(u.Until) {
			continue
		}
		at := operator.RefOf(u.Live)
		live, err := r.ReadLive(ctx, u.Downstream, at)
		switch {
		case err != nil:
			r.fail(r.OutcomeOf(u.Downstream, at), err)
			r.Memory.NoteDeleting(u.Downstream, u.Live, r.Began)
		case live == nil || live.UID != u.Live.UID:
			r.Memory.NoteGone(u.Live.UID, r.Began)
		default:
			r.Memory.NoteDeleting(u.Downstream, live, r.Began)
		}
	}
}

// WithUnseen adds the objects that were read and are not in the cache, as long as they exist.
func (r *Reader) WithUnseen(left []operator.Owned) []operator.Owned {
	for i := range left {
		left[i].Spaced = r.Removals.Wait(memory.At(left[i].Downstream, operator.RefOf(left[i].Live)),
			memory.SpacingOf(r.Pipeline.Config.Retry), r.Began)
	}
	for _, own := range r.Unseen {
		shown := slices.ContainsFunc(left, func(o operator.Owned) bool { return o.Live.UID == own.Live.UID })
		if !shown && !r.Memory.IsNotOurs(own.Live.UID, r.Began) {
			left = append(left, own)
		}
	}
	return left
}
