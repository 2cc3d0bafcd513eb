package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

func (r *reconciliation) addFinalizer(ctx context.Context) bool {
	r.lostUpstreams.noteFinalizer(r.Upstream.GetUID(), r.Began)
	up, err := r.client.AddFinalizer(ctx, r.UpstreamTarget(r.Ref), r.Upstream, r.Pipeline.Config.Conventions.Finalizer)
	if err != nil {
		r.failUpstream("adding the finalizer", err)
		return false
	}
	r.wroteFinalizer(up)
	return true
}

// finalizerChange is the change that the finalizer of the upstream can have next; wroteFinalizer counts that it was made, and takes over the upstream as returned.
func (r *reconciliation) finalizerChange() string {
	if r.HasFinalizer() {
		return "remove"
	}
	return "add"
}

func (r *reconciliation) wroteFinalizer(up *unstructured.Unstructured) {
	r.Log.V(1).Info("finalizer written", "upstream", r.Ref.String(), "finalizers", up.GetFinalizers())
	r.Memory.Contests.Edit().Finalizers.Write(r.Memory.Cause(), r.finalizerChange(), r.spacing(), r.Began)
	r.Upstream = withoutManagedFields(up)
	r.Memory.WroteUpstream(up, false)
}

// removeUnneededFinalizer removes the finalizer from an upstream that no longer needs it. Objects that the status records and
// the cache does not show are read first: the cache may lag, and without the finalizer nothing would keep the upstream until
// they are gone. What is found is left to the next round.
func (r *reconciliation) removeUnneededFinalizer(ctx context.Context, in operator.Input) bool {
	known := in.Leftovers
	for k, f := range in.Facts {
		if f.Live != nil {
			known = append(known, operator.Owned{Downstream: in.Desired.Objects[k].Downstream, Live: f.Live})
		}
	}
	if r.findUnserved(ctx); len(r.failures) > 0 {
		return false
	}
	unseen, err := r.readRecorded(ctx, known)
	switch {
	case err != nil:
		r.failUpstream("reading the object recorded in the status", err)
		return false
	case len(unseen) > 0:
		r.unseen = append(r.unseen, unseen...)
		return true
	}
	return r.removeFinalizer(ctx)
}

// removeFinalizer removes the finalizer, if it exists. Of an upstream that is gone, there is nothing to remove.
func (r *reconciliation) removeFinalizer(ctx context.Context) bool {
	if r.upstreamGone {
		return true
	}
	up, err := r.client.RemoveFinalizer(ctx, r.UpstreamTarget(r.Ref), r.Upstream, r.Pipeline.Config.Conventions.Finalizers()...)
	switch {
	case errors.Is(err, apply.ErrGone):
		return true
	case err != nil:
		r.failUpstream("removing the finalizer", err)
		return false
	}
	r.wroteFinalizer(up)
	return true
}

// finalize handles an upstream that is being deleted: first deletion.before, if the config has it; then the objects with the
// upstream's owner mark in the cache, and those that its status records, are deleted or released; then the finalizer is
// removed. For the downstreams it needs neither template nor rule.
func (r *reconciliation) finalize(ctx context.Context) time.Duration {
	deleting := status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonDeleting}
	if !r.HasFinalizer() || r.Memory.Steps.IsFinalized || r.Pipeline.Observing() {
		r.Memory.SetUpstreamFailure("")
		r.tally().Verdict(r.Memory, deleting)
		return 0
	}
	if r.watchLagsDeletion() {
		r.Log.V(1).Info("waiting until the watch shows the deletion", "upstream", r.Ref.String())
		return startOverAfter
	}
	if wait := r.Memory.Retry.Get().Wait(r.Memory.Cause(), r.Began); wait > 0 {
		return wait
	}
	r.Memory.SetUpstreamFailure("")
	if recorded := r.Pipeline.RecordedBefore(r.Upstream); recorded != nil {
		r.reportedBefore = recorded.State
	}
	var d operator.Decision
	for range maxRounds {
		in, err := r.gatherDeletion(ctx)
		switch {
		case errors.Is(err, apply.ErrGone):
			r.forget(r.Ref)
			return 0
		case err != nil:
			r.failUpstream("reading the object recorded in the status", err)
			r.reportDeletion(ctx, operator.Decision{WaitsForBefore: true})
			r.tally().Verdict(r.Memory, deleting)
			return r.retryLater()
		}
		d = decide.Deletion(r.Pipeline.Settings, in)
		if r.awaitOthers(in, d) {
			continue
		}
		r.notifyObserver(func(o Observer) { o.Decided(in, d) })
		acted := r.actDeletion(ctx, &d, in)
		if r.finalized {
			return 0
		}
		if !acted {
			break
		}
	}
	return r.reportHeld(ctx, d)
}

// gatherDeletion gathers what a decision about a deletion depends on. It reads objects that the status records and the cache
// does not have, once it is the downstreams' turn.
func (r *reconciliation) gatherDeletion(ctx context.Context) (operator.Input, error) {
	in := operator.Input{Upstream: r.Upstream, Desired: r.Memory.Desired(), HasFinalizer: true, Now: r.Began, Cascade: r.Cascade()}
	r.unwatched, r.unread = false, nil
	var err error
	if decide.UnfinishedBefore(r.Pipeline.Settings, r.Upstream) != nil {
		in.Before, err = r.gatherEarlierBefore(ctx)
		if in.Upstream = r.Upstream; err != nil || in.Before.Record != nil {
			return in, err
		}
	}
	if r.Pipeline.Before != nil && !decide.SkipsBefore(r.Pipeline.Settings, r.Upstream, in.Cascade) {
		if in.Before, err = r.gatherBefore(ctx); err != nil {
			return in, err
		}
		if in.Upstream = r.Upstream; !decide.BeforePassed(r.Pipeline.Settings, in.Before.Record) {
			return in, nil
		}
	}
	r.findNamedOwners(ctx)
	r.checkTerminating(ctx)
	r.TrustTerminating()
	in.Leftovers = r.FindLeftovers(nil, r.OwnedByDownstream())
	r.findUnserved(ctx)
	missing, err := r.readRecorded(ctx, in.Leftovers)
	if err != nil {
		return in, err
	}
	r.unwatched = r.unwatched || len(missing) > 0
	in.Leftovers, in.Unread = append(in.Leftovers, missing...), r.unread
	in.Others, in.Unrecorded = findOthers(ctx, r, in.Leftovers), r.Unrecorded()
	in.Forgotten, err = findContents(ctx, r, in.Leftovers)
	return in, err
}

// actDeletion carries out a decision, the finalizer last. It reports whether anything was done, so that deciding again may
// bring something new.
func (r *reconciliation) actDeletion(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if d.WaitsForBefore {
		return d.Before.Action != operator.ActionNone && r.actBefore(ctx, d, in)
	}
	if err := releaseHolders(ctx, r, d.Kept); err != nil {
		r.failUpstream("releasing an object that contains what stays", err)
		return false
	}
	acted := r.removeLeftovers(ctx, d, in)
	if len(r.failures) > 0 || r.outOfTime || d.Finalizer != operator.FinalizerRemove {
		return acted && len(r.failures) == 0 && !r.outOfTime
	}
	if d.Before != nil && d.Before.Action != operator.ActionNone && !r.actBefore(ctx, d, in) {
		return false
	}
	if err := r.releaseEarlierBefore(ctx); err != nil {
		r.failUpstream("releasing the object of an earlier deletion.before", err)
		return false
	}
	if !r.removeFinalizer(ctx) {
		return false
	}
	// The upstream is forgotten once the watch shows it gone: until then the cache may have it with its finalizer.
	r.Log.Info("upstream cleaned up", "upstream", r.Ref.String(), "objects", len(d.Leftovers))
	r.finalized, r.Memory.Steps.IsFinalized = true, true
	return true
}

// reportHeld reports on an upstream whose deletion is held, and returns after how long to check again.
func (r *reconciliation) reportHeld(ctx context.Context, d operator.Decision) time.Duration {
	r.tally().Verdict(r.Memory, r.reportDeletion(ctx, d))
	r.reporter().Deletion(r.Memory, d, r.failures, r.reportedBefore)
	if len(r.failures) > 0 || r.upstreamFailed {
		return r.retryLater()
	}
	if r.outOfTime {
		return time.Millisecond
	}
	var after time.Duration
	if h := d.Before; h != nil {
		m := r.Memory.Before.Edit()
		r.tally().Before(r.Memory, h.State)
		if (h.Theirs || h.Action != operator.ActionNone) && m.Retry.Wait(r.Memory.Cause(), r.Began) == 0 {
			r.delay(&m.Retry)
		}
		after = minNonZero(h.RequeueAfter, m.Retry.Wait(r.Memory.Cause(), r.Began))
	}
	after = minNonZero(after, r.statusDelay)
	if !r.TrustedUntil.IsZero() {
		after = minNonZero(after, r.TrustedUntil.Sub(r.Began))
	}
	if len(d.Leftovers) == 0 && !r.unwatched {
		return after
	}
	waiting := &r.Memory.Notes.Edit().Waiting
	wait := waiting.Wait(r.Memory.Cause(), r.Began)
	if wait == 0 {
		wait = r.delay(waiting)
	}
	return minNonZero(after, wait)
}

// reportDeletion writes the status of an upstream that is being deleted, if it changes, and returns the verdict of Ready.
func (r *reconciliation) reportDeletion(ctx context.Context, d operator.Decision) status.Verdict {
	failed := r.failuresByDownstream()
	if f := r.Memory.Before.Edit().FailureOf(d.Before); f != nil {
		failed[operator.BeforeIndex] = f
	}
	report := report.Deletion(r.Pipeline.Settings, r.Upstream, d, failed, r.Unrecorded(), metav1.NewTime(r.Began))
	report, _ = r.writeReport(ctx, report, func() canonical.Sum { return r.causeOfDeletion(report) })
	if report.Verdict.Reason == "" { // there is nothing left to report on but a request that failed
		return status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonDeleting}
	}
	return report.Verdict
}

// readRecorded reads the objects that are remembered and the cache does not have: a cache may lag, and what is missed here
// is orphaned forever. Only an object with this upstream's owner mark is ours to clean up; one that somebody else created under
// the name has another uid.
func (r *reconciliation) readRecorded(ctx context.Context, known []operator.Owned) ([]operator.Owned, error) {
	var more []operator.Owned
	read := map[memory.Place]*drift.Live{}
	for _, w := range r.Witnesses(r.Recorded()) {
		if r.Memory.IsNotOurs(w.UID, r.Began) || slices.ContainsFunc(known, func(o operator.Owned) bool { return o.Live.UID == w.UID }) {
			continue
		}
		if r.failureOf(w.Downstream) != nil {
			r.noteUnread(w)
			continue
		}
		live, err := r.readLive(ctx, w.Downstream, w.At)
		if err != nil {
			return nil, err
		}
		if read[w.Place] = live; live != nil && (r.IsOwn(w.Downstream, live, w.UID) || r.IsOrphaned(live, w.UID)) {
			more = append(more, operator.Owned{Downstream: w.Downstream, Live: live, Certain: !w.Guessed})
		}
	}
	return r.readMade(ctx, known, more, read)
}

// readMade adds what this process created, or tried to, and neither the cache nor the status shows; see placesToRead. read has what was just
// read; nil for no object.
func (r *reconciliation) readMade(ctx context.Context, known, more []operator.Owned, read map[memory.Place]*drift.Live) ([]operator.Owned, error) {
	for _, m := range placesToRead(r) {
		stands := func(o operator.Owned) bool {
			return o.Downstream == m.Downstream && o.Live.Namespace == m.At.Namespace && o.Live.Name == m.At.Name
		}
		if r.failureOf(m.Downstream) != nil || slices.ContainsFunc(known, stands) || slices.ContainsFunc(more, stands) {
			continue
		}
		live, ok := read[m]
		if !ok {
			var err error
			if live, err = r.readLive(ctx, m.Downstream, m.At); err != nil {
				return nil, err
			}
		}
		switch {
		case live != nil && (r.IsOwn(m.Downstream, live, "") || marks.HasLostOwner(live) && r.IsOrphaned(live, live.UID)):
			more = append(more, operator.Owned{Downstream: m.Downstream, Live: live, Certain: true})
		case r.Upstream.GetDeletionTimestamp() == nil:
		case live != nil && hasFormerMarks(r, m.Downstream, live):
			r.failWith(r.outcomeOf(m.Downstream, m.At), apply.Failure{Reason: apply.ReasonConflict, Message: fmt.Sprintf(formerMarks, m.At)})
			r.unread = append(r.unread, operator.Owned{Downstream: m.Downstream, Live: live}) // what contains it stays
		default:
			r.Memory.Notes.Edit().NoteNotMade(m)
		}
	}
	return more, nil
}

// placesToRead are those where this process created an object, or tried to, and where no status records what was created, also those that
// the config gives an upstream that goes: the watches do not show what was created under other labels or marks.
func placesToRead(r *reconciliation) []memory.Place {
	notes, deleting := r.Memory.Notes.Get(), r.Upstream.GetDeletionTimestamp() != nil
	places := slices.Clone(notes.Unconfirmed)
	if r.Pipeline.TrustsStatus() || r.Selected && !deleting {
		return places
	}
	for _, o := range r.Memory.Desired().Objects {
		m := memory.At(o.Downstream, o.Target)
		if o.Wanted && o.Err == nil && !slices.Contains(notes.Unconfirmed, m) && (!deleting || !notes.NotMade[m]) {
			places = append(places, m)
		}
	}
	return places
}

const formerMarks = "%s exists and seems to be this upstream's, under another field manager or owner annotation than conventions have: " +
	"set conventions.previous to the names that it was created with, or delete the object; the finalizer stays until then"

// hasFormerMarks reports whether an object at a target is probably the upstream's own, of a time when the config had another field manager or
// owner annotation. Nothing proves it, so it is neither deleted nor released; but what becomes of it with the upstream must not be left open.
func hasFormerMarks(r *reconciliation, downstream int, live *drift.Live) bool {
	marked := marks.Marked(live, r.Upstream.GetUID()) && (live.Hash != "" || live.Managed)
	return !live.Deleting && marks.IsOfFields(live.Hash) == r.Pipeline.Downstreams[downstream].OwnsFields() &&
		(marked || marks.HasLostOwner(live) && r.Cascade() != operator.CascadeOrphan)
}

// findUnserved fails the downstreams whose kind is not watched, unless the API server says that it has no objects: nothing can
// find those that may exist, and what they may come after stays. Objects of a kind that it does not serve are gone.
func (r *reconciliation) findUnserved(ctx context.Context) {
	for i, d := range r.Pipeline.Downstreams {
		if d.Kind.Missing == nil || r.failureOf(i) != nil {
			continue
		}
		if err := r.Kinds.Absent(ctx, d.Kind.GVK); err != nil {
			r.fail(r.outcomeOf(i, operator.Ref{}), err)
			r.unread = append(r.unread, operator.Owned{Downstream: i, Live: &drift.Live{}})
			f := r.failureOf(i)
			f.Message = fmt.Sprintf("cannot find out whether a %s of %s exists: %s", d.Kind.GVK.Kind, d.Kind.GVK.GroupVersion(), f.Message)
		}
	}
}

// readLive reads the object at a place; nil if there is none, or its kind is gone.
func (r *reconciliation) readLive(ctx context.Context, i int, at operator.Ref) (*drift.Live, error) {
	if k := r.Pipeline.Downstreams[i].Kind; k.Missing != nil {
		return nil, r.Kinds.Absent(ctx, k.GVK)
	}
	obj, err := r.client.Get(ctx, act.Target(r.Pipeline.Settings, i, at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := r.actor(operator.Input{}).LiveOf(r.Pipeline.Downstreams[i].Downstream, obj)
	if err != nil {
		return nil, err
	}
	r.findNamed(ctx, found, true)
	return r.Memory.Notes.Get().WithMark(found), nil
}
