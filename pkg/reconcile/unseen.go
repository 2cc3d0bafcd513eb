package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// findUnseen reads objects that the cache does not show, and reports whether any was found.
func (r *reconciliation) findUnseen(ctx context.Context) bool {
	r.unread = nil
	found := r.findRecorded(ctx)
	return r.findMade(ctx) || found
}

// findRecorded is findUnseen for those that are remembered at a place that is no target: the cache may lag, or they have lost the labels of
// the watch, or their kind is not watched. What they come after stays, also while nobody knows what is wanted of them.
func (r *reconciliation) findRecorded(ctx context.Context) (found bool) {
	for _, w := range r.Witnesses(r.Recorded()) {
		if r.isKnown(w.UID) || r.Selected && r.IsTarget(w.Downstream, w.At) {
			continue
		}
		if cached := r.Cache.Live(w.Downstream, w.At); cached != nil && cached.UID == w.UID {
			continue
		}
		switch live, ok := r.tryRead(ctx, w); {
		case !ok:
		case live == nil || !r.IsOwn(w.Downstream, live, w.UID):
			r.Memory.NoteAbsent(w.UID, live, r.Began)
		default:
			r.unseen, found = append(r.unseen, operator.Owned{Downstream: w.Downstream, Live: live, Certain: !w.Guessed}), true
			if !slices.ContainsFunc(r.Memory.Notes.Get().Left, memory.IsOf(w.UID)) {
				n := r.Memory.Notes.Edit()
				n.Left = append(n.Left, w) // the status may not record it any more once it records its successor
			}
		}
	}
	return found
}

// tryRead is readLive, unless reading the downstream has failed before.
func (r *reconciliation) tryRead(ctx context.Context, w memory.Witness) (live *drift.Live, ok bool) {
	if r.failureOf(w.Downstream) == nil {
		var err error
		if live, err = r.readLive(ctx, w.Downstream, w.At); err == nil {
			return live, true
		}
		if r.Pipeline.Downstreams[w.Downstream].Kind.Missing == nil { // else its own outcome says so
			r.fail(r.outcomeOf(w.Downstream, w.At), err)
		}
	}
	r.noteUnread(w)
	return nil, false
}

// noteUnread notes an object that may exist: what it comes after stays, and the status goes on recording it.
func (r *reconciliation) noteUnread(w memory.Witness) {
	live := &drift.Live{Identity: drift.Identity{Namespace: w.At.Namespace, Name: w.At.Name, UID: w.UID}, Unselected: true}
	for _, rec := range r.Recorded() {
		if rec.UID == w.UID {
			live.Hash = rec.Hash
		}
	}
	r.unread = append(r.unread, operator.Owned{Downstream: w.Downstream, Live: live})
}

// nextForUnseen is when objects are looked for again that the cache does not show: no event reports their end.
func (r *reconciliation) nextForUnseen() time.Duration {
	exists := func(own operator.Owned) bool { return !r.Memory.IsNotOurs(own.Live.UID, r.Began) }
	if len(r.unread) == 0 && !slices.ContainsFunc(r.unseen, exists) {
		r.Memory.Notes.Set(false, func(n *memory.Notes) { n.Waiting = memory.Retry{} })
		return 0
	}
	waiting := &r.Memory.Notes.Edit().Waiting
	if wait := waiting.Wait(r.Memory.Cause(), r.Began); wait > 0 {
		return wait
	}
	return r.delay(waiting)
}

// leftToReport are the objects at no target that the status records: those of the decision, and those that could not be read.
func (r *reconciliation) leftToReport(d operator.Decision) []operator.Outcome {
	left := slices.Clone(d.Leftovers)
	for _, own := range r.unread {
		if own.Live.UID != "" {
			o := r.outcomeOf(own.Downstream, operator.Ref{Namespace: own.Live.Namespace, Name: own.Live.Name})
			o.State, o.UID, o.Live = operator.StateWaiting, own.Live.UID, own.Live
			left = append(left, o)
		}
	}
	return left
}

// findMade is findUnseen for what this process tried to create, and may have created although no response came: no status need record it.
func (r *reconciliation) findMade(ctx context.Context) (found bool) {
	if r.Selected {
		return r.findMadeBefore(ctx)
	}
	made, err := r.readMade(ctx, r.FindLeftovers(nil, r.OwnedByDownstream()), r.unseen, nil)
	if err != nil {
		r.failUpstream("reading an object that may have been created", err)
		r.upstreamFailed = true
		return false
	}
	found = len(made) > len(r.unseen)
	r.unseen = made
	return found
}

// findMadeBefore is findMade for places that are not targets any more. What is at a target is met by the next create.
func (r *reconciliation) findMadeBefore(ctx context.Context) (found bool) {
	if len(r.Memory.Notes.Get().Unconfirmed) == 0 {
		return false
	}
	owned := r.OwnedByDownstream()
	for _, m := range slices.Clone(r.Memory.Notes.Get().Unconfirmed) {
		isThere := func(live *drift.Live) bool { return live.Namespace == m.At.Namespace && live.Name == m.At.Name }
		if r.Memory.Desired().Unknown(m.Downstream) || r.IsTarget(m.Downstream, m.At) || slices.ContainsFunc(owned[m.Downstream], isThere) ||
			slices.ContainsFunc(r.unseen, func(own operator.Owned) bool { return own.Downstream == m.Downstream && isThere(own.Live) }) {
			continue
		}
		switch live, ok := r.tryRead(ctx, memory.Witness{Place: m}); {
		case !ok:
		case live != nil && r.IsOwn(m.Downstream, live, ""):
			r.unseen, found = append(r.unseen, operator.Owned{Downstream: m.Downstream, Live: live, Certain: true}), true
		default:
			r.Memory.ConfirmCreated(func(read memory.Place) bool { return read == m })
		}
	}
	return found
}

// isKnown reports whether an object is known to be gone, terminating or released, or was read.
func (r *reconciliation) isKnown(uid types.UID) bool {
	isIt := func(u memory.Unplaced) bool { return u.Live.UID == uid }
	return r.Memory.IsNotOurs(uid, r.Began) || slices.ContainsFunc(r.Memory.Terminating(), isIt) || slices.ContainsFunc(r.unseen, func(own operator.Owned) bool { return own.Live.UID == uid })
}
