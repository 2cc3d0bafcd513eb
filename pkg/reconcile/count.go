package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Count does what Reconcile does, but counts instead of acting, and notes for IsInSync whether there is nothing to do; with cleansUp, an
// upstream that is being deleted is finalized, and one whose deletion would lose what the config keeps gets the finalizer.
// It returns the count and after how long to count again: because no watch tells of a change, or, if failed is true, because
// the upstream could not be counted, for which guard waits.
func (r *Reconciler) Count(ctx context.Context, ref operator.Ref, cleansUp bool) (c guard.Counted, after time.Duration, failed bool) {
	r.memory.peek(ref).clearInSync()
	l, err := r.beginAny(ctx, ref)
	if err != nil {
		return c, r.readFailed(ref, err), true
	}
	r.memory.found(ref)
	if l == nil {
		return c, 0, false
	}
	defer l.releaseSlot()
	ctx, leave, ok := l.enterShard(ctx)
	if !ok {
		return c, 0, false
	}
	defer leave()
	switch {
	case l.unknown && cleansUp:
		return c, l.saveUnknown(ctx), false
	case l.unknown:
		r.forget(ref)
	case l.upstream.GetDeletionTimestamp() == nil && r.deselected.some(ref): // its author took the label off, while a process ran
	case l.upstream.GetDeletionTimestamp() == nil:
		defer func() { l.record.desired.Forget() }()
		paused := l.resume()
		_, d := l.firstDecision(ctx)
		_, c = l.count(ctx, d)
		l.countFailing(d, &c)
		if l.noSlot || ctx.Err() != nil {
			return c, noSlotDelay(), true
		}
		if !paused {
			l.noteCountedInSync(ctx, d)
		}
		if cleansUp {
			after = l.save(ctx)
		}
		if !l.trustedUntil.IsZero() {
			after = minNonZero(after, time.Duration(r.Pipeline.Config.Retry.MaxDelay))
		}
	case cleansUp:
		return c, l.finalize(ctx), false
	}
	return c, after, false
}

// heldByGuard reports whether a decision must wait for the rest of its batch, or for a confirmation, whatever its author writes meanwhile:
// what follows from an edit and what from an input is not known apart.
func (r *reconciliation) heldByGuard(ctx context.Context, d operator.Decision) bool {
	if !r.Host.CountedByGuard(r.ref) && !r.isGoneRow() { // what a row that is gone leaves is counted in any case
		return false
	}
	if was := r.upstream; r.resume() {
		defer func() { r.upstream = was }()
		_, d = r.firstDecision(ctx)
	}
	c := r.countIn(r.withRecreations(ctx, d))
	restricted := c.Deleted > 0 || c.Changed > 0 && r.Pipeline.Config.Guard.MaxChanged != ""
	return !r.Host.MayProceed(r.ref, c, !restricted)
}

// resume makes a paused upstream count as it will be once it is resumed: then nobody counts.
func (r *reconciliation) resume() (paused bool) {
	if !r.Pipeline.Paused(r.upstream) {
		return false
	}
	r.upstream = r.upstream.DeepCopy()
	annotations := r.upstream.GetAnnotations()
	delete(annotations, r.Pipeline.Config.Conventions.Pause.Annotation)
	r.upstream.SetAnnotations(annotations)
	return true
}

// firstDecision is the decision before the API server is asked for anything but the objects that the status records.
func (r *reconciliation) firstDecision(ctx context.Context) (operator.Input, operator.Decision) {
	r.findNamedOwners(ctx)
	r.findUnseen(ctx)
	return r.decide(func() operator.Input { return r.gather(ctx) })
}

// count counts the existing objects that would be changed or deleted, and returns the decision with what it has learned. It
// writes nothing: it reads what the caches do not show, and makes a dry run of each repair, which may only be due to
// normalization by the API server.
func (r *reconciliation) count(ctx context.Context, d operator.Decision) (operator.Decision, guard.Counted) {
	d = r.withRecreations(ctx, d)
	losesValues := slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool { return o.LostValues != "" })
	if r.Pipeline.Config.Guard.MaxChanged == "" && !losesValues { // deletions alone are counted
		return d, r.countIn(d)
	}
	if r.findUncached(ctx, d) {
		d = decide.Decide(r.Pipeline.Settings, r.gather(ctx))
	}
	supposed, assumed := operator.Decision{Outcomes: slices.Clone(d.Outcomes), Leftovers: d.Leftovers}, false
	for i := range supposed.Outcomes {
		if o := &supposed.Outcomes[i]; r.isDoubtful(*o) && !r.wouldRepair(ctx, *o) {
			o.State, o.Action, assumed = operator.StateInSync, operator.ActionNone, true
		}
	}
	if assumed {
		d = decide.Decide(r.Pipeline.Settings, r.gather(ctx))
	}
	return d, r.countIn(supposed)
}

// withRecreations is a decision that knows which updates delete their object: with updatePolicy Recreate, a dry run of each
// update tells.
func (r *reconciliation) withRecreations(ctx context.Context, d operator.Decision) operator.Decision {
	var in operator.Input
	found := false
	for _, o := range d.Outcomes {
		if o.State != operator.StateUpdate {
			continue
		}
		if in.Facts == nil {
			in = r.gather(ctx)
		}
		if !r.mayRecreate(o, in) {
			continue
		}
		doc, err := r.dryRunDocument(ctx, in.Desired, o)
		if err != nil {
			continue // nothing is sent either
		}
		err = r.client.AcceptsApply(ctx, r.target(o.Downstream, o.Target), o.UID, doc)
		if apply.Classify(err).Reason != apply.ReasonRejected {
			continue
		}
		if way, failed := r.wayAround(ctx, o, doc, err); way == nil && failed == nil && r.proveImmutable(ctx, o, doc, err) == nil {
			found = true
		}
	}
	if !found {
		return d
	}
	return decide.Decide(r.Pipeline.Settings, r.gather(ctx))
}

// countIn counts the existing objects that a decision changes or deletes. An object of another owner counts if it is about to
// become ours.
func (r *reconciliation) countIn(d operator.Decision) guard.Counted {
	var c guard.Counted
	var changes []any
	note := func(o operator.Outcome, changed, deleted bool) {
		if c.Existing++; !changed {
			return
		}
		if c.Changed++; c.Changed == 1 {
			c.First = fmt.Sprintf("%s: %s", r.Pipeline.Downstreams[o.Downstream].Name, o.State)
		}
		if deleted {
			c.Deleted++
		}
		changes = append(changes, r.changeOf(o, deleted))
	}
	lost := map[int]int{} // by downstream, the objects that are made anew without the values of one that they replace
	for _, o := range d.Outcomes {
		if o.LostValues != "" { // whether or not an object exists, values that the upstream had are lost
			if note(o, true, true); o.Live == nil {
				lost[o.Downstream]++
			}
			continue
		}
		if o.Live != nil && !o.Live.Deleting && (!o.Theirs || rewrites(o)) {
			note(o, rewrites(o), o.State == operator.StateRecreate)
		}
	}
	for _, o := range d.Leftovers {
		if lost[o.Downstream] > 0 { // it is counted as what replaces it
			lost[o.Downstream]--
			continue
		}
		if !o.Live.Deleting {
			goes := r.goes(o, d.Outcomes)
			note(o, goes, goes && r.countsAsDeleted(o))
		}
	}
	if len(changes) > 0 {
		c.Digest = drift.Digest(changes)
	}
	return c
}

// goes reports whether a leftover is removed, now or, if it did not wait already when the status was written, at any time: its successors
// may come after what is not ready yet, or wait for names.
func (r *reconciliation) goes(o operator.Outcome, outcomes []operator.Outcome) bool {
	waits := o.GoesLater || o.State == operator.StateSuperseded
	return o.Action != operator.ActionNone || waits && !r.waited(o) || o.State == operator.StateSuperseded && replacesSuperseded(outcomes, o.Downstream)
}

// waited reports whether an object that goes later waited already when the status was written.
func (r *reconciliation) waited(o operator.Outcome) bool {
	return slices.ContainsFunc(r.recorded(), func(rec status.Recorded) bool {
		return rec.UID == o.UID && (rec.State == string(o.State) || rec.State == string(operator.StateConflict))
	})
}

// countsAsDeleted reports whether guard counts a leftover that goes as deleted. Of rows, an orphan counts as well: source.deletes limits both.
func (r *reconciliation) countsAsDeleted(o operator.Outcome) bool {
	return r.Pipeline.HasRows() || r.Pipeline.Config.Downstreams[o.Downstream].DeletionPolicy != config.DeletionOrphan
}

// changeOf identifies what is confirmed for one object: that object, its state and its desired state.
func (r *reconciliation) changeOf(o operator.Outcome, deleted bool) []any {
	if o.LostValues != "" {
		return []any{r.Pipeline.Downstreams[o.Downstream].Name, o.Target.String(), o.LostValues}
	}
	if deleted && o.State != operator.StateRecreate {
		return []any{string(o.Live.UID), "deleted"}
	}
	hash := ""
	if w := r.record.desired; w != nil && o.Object < len(w.Objects) {
		hash = w.Objects[o.Object].Hash
	}
	return []any{string(o.Live.UID), string(o.State), string(o.Live.P[:]), o.Live.Hash, hash}
}

// rewrites reports whether an existing object would be changed: because its desired state has changed, because it is adopted,
// or because it has drifted.
func rewrites(o operator.Outcome) bool {
	switch o.State {
	case operator.StateUpdate, operator.StateRecreate, operator.StateRepair:
		return o.Action != operator.ActionNone && !o.Compares
	}
	return false
}

// isDoubtful reports whether a repair may turn out to change nothing. One of an object without hash or owner mark, with another
// form of hash, or without fields of our manager certainly changes something.
func (r *reconciliation) isDoubtful(o operator.Outcome) bool {
	return o.State == operator.StateRepair && o.Action == operator.ActionApply &&
		o.Live.Hash != "" && !drift.OtherForm(o.Live.Hash) && o.Live.Managed && !o.Live.NeedsTakeover && marks.Marked(o.Live, r.upstream.GetUID())
}

// wouldRepair reports whether a repair would change or remove any of our fields; true if that is unknown. The answer is
// remembered as if the repair had been made, so that one which changes nothing costs no request later.
func (r *reconciliation) wouldRepair(ctx context.Context, o operator.Outcome) bool {
	i, live := o.Downstream, o.Live
	t, question := &r.record.objects[o.Object].target, dryRunKeyOf(live, r.record.desired.Objects[o.Object].Hash)
	switch b := r.predecessorBaseline(i, live.UID); {
	case b != nil && *b == live.P && live.Hash == question.hash:
		t.dryRunAnswer = &dryRunAnswer{question, true}
	case t.dryRunAnswer == nil || t.dryRunAnswer.key != question:
		same, err := r.wouldStay(ctx, o)
		if err != nil {
			r.Log.Info("the dry run failed: counting this repair, which may change nothing", "upstream", r.ref.String(), "target", o.Target.String(), "error", err.Error())
			return true
		}
		t.dryRunAnswer = &dryRunAnswer{question, same}
	}
	if t.dryRunAnswer.same {
		sum := live.P
		r.record.setBaseline(o.Object, live.UID, &sum, false)
	}
	return !t.dryRunAnswer.same
}

// wouldStay asks by dry runs whether an apply, and the removal of keys that others added to exclusive fields, would leave our
// fields as they are: the API server may normalize values, or add keys of its own.
func (r *reconciliation) wouldStay(ctx context.Context, o operator.Outcome) (bool, error) {
	i, live := o.Downstream, o.Live
	at, view := r.target(i, o.Target), &r.Pipeline.Downstreams[i].View
	if view.LacksGenerated(live) {
		return false, nil
	}
	doc, err := r.dryRunDocument(ctx, r.record.desired, o)
	if err != nil {
		return false, err
	}
	resp, err := r.client.DryRunApply(ctx, at, live.UID, doc)
	if err != nil {
		return false, err
	}
	would, err := view.Live(resp)
	if err != nil || would.P != live.P || would.Hash != live.Hash {
		return false, err
	}
	extras := r.extras(i, would, resp, doc, false)
	if len(extras) == 0 {
		return true, nil
	}
	if resp, err = r.client.DryRunNull(ctx, at, live.UID, resp.GetResourceVersion(), extras); err != nil {
		return false, err
	}
	would, err = view.Live(resp)
	return err == nil && would.P == live.P, err
}

// findUncached reads objects that the caches do not show and a create would meet. What the status records at a target may have
// lost the labels of the watch, as after a change of the config's; if the status records nothing, or another owner's object may
// be adopted, only reading the target tells. It reports whether any was found.
func (r *reconciliation) findUncached(ctx context.Context, d operator.Decision) bool {
	found, recorded, records := false, r.recorded(), r.Pipeline.TrustsStatus()
	for k, o := range d.Outcomes {
		downstream := r.Pipeline.Downstreams[o.Downstream]
		rec, adopts := r.recordedAs(recorded, k), downstream.Config.AdoptionPolicy == config.AdoptIfUnowned
		var uid types.UID
		switch {
		case o.State != operator.StateCreate:
			continue
		case rec != nil && rec.UID != "" && rec.Namespace == o.Target.Namespace && rec.ObjectName == o.Target.Name:
			uid = rec.UID
		case records && !adopts:
			continue
		}
		live, err := r.readLive(ctx, o.Downstream, o.Target)
		switch {
		case err != nil:
			r.Log.Info("an object that may exist cannot be read and is not counted", "upstream", r.ref.String(), "target", o.Target.String(), "error", err.Error())
		case live != nil && (adopts || r.isOwn(o.Downstream, live, uid)):
			r.record.remember(k, live, r.now)
			found = true
		case uid != "":
			r.record.noteAbsent(uid, live, r.now)
		}
	}
	return found
}

// replacesSuperseded reports whether an object of a downstream is about to be created or updated, which has superseded another one.
func replacesSuperseded(list []operator.Outcome, downstream int) bool {
	return slices.ContainsFunc(list, func(o operator.Outcome) bool {
		return o.Downstream == downstream &&
			(o.Action == operator.ActionCreate || o.Action == operator.ActionApply || o.State == operator.StateRecreate)
	})
}
