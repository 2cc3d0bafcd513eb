package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
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
	for _, w := range r.remembered() {
		if r.isKnown(w.uid) || r.selected && r.isTarget(w.downstream, w.at) {
			continue
		}
		if cached := r.Cache.Live(w.downstream, w.at); cached != nil && cached.UID == w.uid {
			continue
		}
		switch live, ok := r.tryRead(ctx, w); {
		case !ok:
		case live == nil || !r.isOwn(w.downstream, live, w.uid):
			r.record.noteAbsent(w.uid, live, r.now)
		default:
			r.unseen, found = append(r.unseen, operator.Owned{Downstream: w.downstream, Live: live, Certain: !w.guessed}), true
			if u := r.record.unusual.edit(); !slices.ContainsFunc(u.left, func(known witness) bool { return known.uid == w.uid }) {
				u.left = append(u.left, w) // the status may not record it any more once it records its successor
			}
		}
	}
	return found
}

// remembered are the objects that the status records, and those that this process knows: a status that was written may not be known yet.
func (r *reconciliation) remembered() (list []witness) {
	listed := map[types.UID]int{}
	add := func(w witness) {
		switch k, ok := listed[w.uid]; {
		case w.uid == "":
		case !ok:
			list, listed[w.uid] = append(list, w), len(list)
		case list[k].guessed:
			list[k] = w
		}
	}
	for _, rec := range r.recorded() {
		if i := slices.IndexFunc(r.Pipeline.Downstreams, func(d *desired.Downstream) bool { return d.Name == rec.Name }); i >= 0 {
			add(witness{place{i, operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}}, rec.UID, 0, rec.Guessed})
		}
	}
	for _, w := range r.record.unusual.get().left {
		add(w)
	}
	for _, m := range r.record.objects {
		add(witness{place{m.downstream, m.at}, m.uid, 0, false})
	}
	return list
}

// tryRead is readLive, unless reading the downstream has failed before.
func (r *reconciliation) tryRead(ctx context.Context, w witness) (live *drift.Live, ok bool) {
	if r.failureOf(w.downstream) == nil {
		var err error
		if live, err = r.readLive(ctx, w.downstream, w.at); err == nil {
			return live, true
		}
		if r.Pipeline.Downstreams[w.downstream].Kind.Missing == nil { // else its own outcome says so
			r.fail(r.outcomeOf(w.downstream, w.at), err)
		}
	}
	r.noteUnread(w)
	return nil, false
}

// noteUnread notes an object that may exist: what it comes after stays, and the status goes on recording it.
func (r *reconciliation) noteUnread(w witness) {
	live := &drift.Live{Identity: drift.Identity{Namespace: w.at.Namespace, Name: w.at.Name, UID: w.uid}, Unselected: true}
	for _, rec := range r.recorded() {
		if rec.UID == w.uid {
			live.Hash = rec.Hash
		}
	}
	r.unread = append(r.unread, operator.Owned{Downstream: w.downstream, Live: live})
}

// nextForUnseen is when objects are looked for again that the cache does not show: no event reports their end.
func (r *reconciliation) nextForUnseen() time.Duration {
	exists := func(own operator.Owned) bool { return !r.record.isNotOurs(own.Live.UID, r.now) }
	if len(r.unread) == 0 && !slices.ContainsFunc(r.unseen, exists) {
		r.record.unusual.set(false, func(u *unusual) { u.waiting = retryState{} })
		return 0
	}
	waiting := &r.record.unusual.edit().waiting
	if wait := waiting.wait(r.record.externalDigest, r.now); wait > 0 {
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
	if r.selected {
		return r.findMadeBefore(ctx)
	}
	made, err := r.readMade(ctx, r.findLeftovers(nil, r.ownedByDownstream()), r.unseen, nil)
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
	if len(r.record.unusual.get().unconfirmed) == 0 {
		return false
	}
	owned := r.ownedByDownstream()
	for _, m := range slices.Clone(r.record.unusual.get().unconfirmed) {
		isThere := func(live *drift.Live) bool { return live.Namespace == m.at.Namespace && live.Name == m.at.Name }
		if r.record.desired.Unknown(m.downstream) || r.isTarget(m.downstream, m.at) || slices.ContainsFunc(owned[m.downstream], isThere) ||
			slices.ContainsFunc(r.unseen, func(own operator.Owned) bool { return own.Downstream == m.downstream && isThere(own.Live) }) {
			continue
		}
		switch live, ok := r.tryRead(ctx, witness{place: m}); {
		case !ok:
		case live != nil && r.isOwn(m.downstream, live, ""):
			r.unseen, found = append(r.unseen, operator.Owned{Downstream: m.downstream, Live: live, Certain: true}), true
		default:
			r.record.confirmCreated(func(read place) bool { return read == m })
		}
	}
	return found
}

// isKnown reports whether an object is known to be gone, terminating or released, or was read.
func (r *reconciliation) isKnown(uid types.UID) bool {
	isIt := func(u unplacedResponse) bool { return u.live.UID == uid }
	return r.record.isNotOurs(uid, r.now) || slices.ContainsFunc(r.record.terminating(), isIt) || slices.ContainsFunc(r.unseen, func(own operator.Owned) bool { return own.Live.UID == uid })
}
