package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// Count does what Reconcile does, but counts instead of acting, and notes for IsInSync whether there is nothing to do; with cleansUp, an
// upstream that is being deleted is finalized, and one whose deletion would lose what the config keeps gets the finalizer.
// It returns the count and after how long to count again: because no watch tells of a change, or, if failed is true, because
// the upstream could not be counted, for which guard waits.
func (r *Reconciler) Count(ctx context.Context, ref operator.Ref, cleansUp bool) (c guard.Counted, after time.Duration, failed bool) {
	r.memory.Peek(ref).ClearInSync()
	l, err := r.beginAny(ctx, ref)
	if err != nil {
		return c, r.readFailed(ref, err), true
	}
	r.memory.Found(ref)
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
	case l.Upstream.GetDeletionTimestamp() == nil && r.deselected.Some(ref): // its author took the label off, while a process ran
	case l.Upstream.GetDeletionTimestamp() == nil:
		defer func() { l.Memory.Desired().Forget() }()
		up, paused := resumed(l.Pipeline.Settings, l.Upstream)
		l.Upstream = up
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
		if !l.TrustedUntil.IsZero() {
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
	if !r.Host.CountedByGuard(r.Ref) && !r.isGoneRow() { // what a row that is gone leaves is counted in any case
		return false
	}
	if up, paused := resumed(r.Pipeline.Settings, r.Upstream); paused {
		defer func(was *unstructured.Unstructured) { r.Upstream = was }(r.Upstream)
		r.Upstream = up
		_, d = r.firstDecision(ctx)
	}
	c := guard.CountOf(r.Pipeline.Settings, r.Memory.Desired(), r.withRecreations(ctx, d), r.Recorded())
	restricted := c.Deleted > 0 || c.Changed > 0 && r.Pipeline.Config.Guard.MaxChanged != ""
	return !r.Host.MayProceed(r.Ref, c, !restricted)
}

// resumed returns a paused upstream as it will be once it is resumed: then nobody counts.
func resumed(s *operator.Settings, upstream *unstructured.Unstructured) (as *unstructured.Unstructured, paused bool) {
	if !s.Paused(upstream) {
		return upstream, false
	}
	upstream = upstream.DeepCopy()
	annotations := upstream.GetAnnotations()
	delete(annotations, s.Config.Conventions.Pause.Annotation)
	upstream.SetAnnotations(annotations)
	return upstream, true
}

// firstDecision is the decision before the API server is asked for anything but the objects that the status records.
func (r *reconciliation) firstDecision(ctx context.Context) (operator.Input, operator.Decision) {
	r.FindNamedOwners(ctx)
	r.FindUnseen(ctx)
	return r.decide(func() operator.Input { return r.gather(ctx) })
}

// count counts the existing objects that would be changed or deleted, and returns the decision with what it has learned. It
// writes nothing: it reads what the caches do not show, and makes a dry run of each repair, which may only be due to
// normalization by the API server.
func (r *reconciliation) count(ctx context.Context, d operator.Decision) (operator.Decision, guard.Counted) {
	d = r.withRecreations(ctx, d)
	losesValues := slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool { return o.LostValues != "" })
	if r.Pipeline.Config.Guard.MaxChanged == "" && !losesValues { // deletions alone are counted
		return d, guard.CountOf(r.Pipeline.Settings, r.Memory.Desired(), d, r.Recorded())
	}
	if r.findUncached(ctx, d) {
		d = decide.Decide(r.Pipeline.Settings, r.gather(ctx))
	}
	supposed, assumed := operator.Decision{Outcomes: slices.Clone(d.Outcomes), Leftovers: d.Leftovers}, false
	for i := range supposed.Outcomes {
		if o := &supposed.Outcomes[i]; isDoubtful(r.Upstream.GetUID(), *o) && !r.wouldRepair(ctx, *o) {
			o.State, o.Action, assumed = operator.StateInSync, operator.ActionNone, true
		}
	}
	if assumed {
		d = decide.Decide(r.Pipeline.Settings, r.gather(ctx))
	}
	return d, guard.CountOf(r.Pipeline.Settings, r.Memory.Desired(), supposed, r.Recorded())
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
		found = r.actor(in).NeedsRecreation(ctx, o) || found
	}
	if !found {
		return d
	}
	return decide.Decide(r.Pipeline.Settings, r.gather(ctx))
}

// isDoubtful reports whether a repair may turn out to change nothing. One of an object without hash or owner mark, with another
// form of hash, or without fields of our manager certainly changes something.
func isDoubtful(upstream types.UID, o operator.Outcome) bool {
	return o.State == operator.StateRepair && o.Action == operator.ActionApply &&
		o.Live.Hash != "" && !canonical.OtherForm(o.Live.Hash) && o.Live.Managed && !o.Live.NeedsTakeover && marks.Marked(o.Live, upstream)
}

// wouldRepair reports whether a repair would change or remove any of our fields; true if that is unknown. The answer is
// remembered as if the repair had been made, so that one which changes nothing costs no request later.
func (r *reconciliation) wouldRepair(ctx context.Context, o operator.Outcome) bool {
	i, live := o.Downstream, o.Live
	t, hash := r.Memory.Object(o.Object), r.Memory.Desired().Objects[o.Object].Hash
	if b := r.predecessorBaseline(i, live.UID); b != nil && *b == live.P && live.Hash == hash {
		t.SetDryRun(live, hash, true)
	} else if t.Verdict(live, hash).SameByDryRun == nil {
		same, err := r.actor(operator.Input{Desired: r.Memory.Desired()}).WouldStay(ctx, o)
		if err != nil {
			r.Log.Info("the dry run failed: counting this repair, which may change nothing", "upstream", r.Ref.String(), "target", o.Target.String(), "error", err.Error())
			return true
		}
		t.SetDryRun(live, hash, same)
	}
	same := *t.Verdict(live, hash).SameByDryRun
	if same {
		sum := live.P
		r.Memory.SetBaseline(o.Object, live.UID, &sum, false)
	}
	return !same
}

// findUncached reads objects that the caches do not show and a create would meet. What the status records at a target may have
// lost the labels of the watch, as after a change of the config's; if the status records nothing, or another owner's object may
// be adopted, only reading the target tells. It reports whether any was found.
func (r *reconciliation) findUncached(ctx context.Context, d operator.Decision) bool {
	found, recorded, records := false, r.Recorded(), r.Pipeline.TrustsStatus()
	for k, o := range d.Outcomes {
		downstream := r.Pipeline.Downstreams[o.Downstream]
		rec, adopts := r.RecordedAs(recorded, k), downstream.Config.AdoptionPolicy == config.AdoptIfUnowned
		var uid types.UID
		switch {
		case o.State != operator.StateCreate:
			continue
		case rec != nil && rec.UID != "" && rec.Namespace == o.Target.Namespace && rec.ObjectName == o.Target.Name:
			uid = rec.UID
		case records && !adopts:
			continue
		}
		live, err := r.ReadLive(ctx, o.Downstream, o.Target)
		switch {
		case err != nil:
			r.Log.Info("an object that may exist cannot be read and is not counted", "upstream", r.Ref.String(), "target", o.Target.String(), "error", err.Error())
		case live != nil && (adopts || r.IsOwn(o.Downstream, live, uid)):
			r.Memory.Remember(k, live, r.Began)
			found = true
		case uid != "":
			r.Memory.NoteAbsent(uid, live, r.Began)
		}
	}
	return found
}
