package reconcile

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/status"
)

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
	if r.FindUnserved(ctx); len(r.failures) > 0 {
		return false
	}
	unseen, err := r.ReadRecorded(ctx, known)
	switch {
	case err != nil:
		r.failUpstream("reading the object recorded in the status", err)
		return false
	case len(unseen) > 0:
		r.Unseen = append(r.Unseen, unseen...)
		return true
	}
	return r.removeFinalizer(ctx)
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
		r.ReportedState = recorded.State
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
	r.IsUnwatched, r.Unread = false, nil
	var err error
	if decide.UnfinishedBefore(r.Pipeline.Settings, r.Upstream) != nil {
		in.Before, err = r.GatherEarlier(ctx)
		if in.Upstream = r.Upstream; err != nil || in.Before.Record != nil {
			return in, err
		}
	}
	if r.Pipeline.Before != nil && !decide.SkipsBefore(r.Pipeline.Settings, r.Upstream, in.Cascade) {
		if in.Before, err = r.Gather(ctx); err != nil {
			return in, err
		}
		if in.Upstream = r.Upstream; !decide.BeforePassed(r.Pipeline.Settings, in.Before.Record) {
			return in, nil
		}
	}
	r.FindNamedOwners(ctx)
	r.CheckTerminating(ctx)
	r.TrustTerminating()
	in.Leftovers = r.FindLeftovers(nil, r.OwnedByDownstream())
	r.FindUnserved(ctx)
	missing, err := r.ReadRecorded(ctx, in.Leftovers)
	if err != nil {
		return in, err
	}
	r.IsUnwatched = r.IsUnwatched || len(missing) > 0
	in.Leftovers, in.Unread = append(in.Leftovers, missing...), r.Unread
	in.Others, in.Unrecorded = r.FindOthers(ctx, in.Leftovers), r.Unrecorded()
	in.Forgotten, err = r.FindContents(ctx, in.Leftovers)
	return in, err
}

// actDeletion carries out a decision, the finalizer last. It reports whether anything was done, so that deciding again may
// bring something new.
func (r *reconciliation) actDeletion(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if d.WaitsForBefore {
		return d.Before.Action != operator.ActionNone && r.Act(ctx, d, in)
	}
	if err := releaseHolders(ctx, r, d.Kept); err != nil {
		r.failUpstream("releasing an object that contains what stays", err)
		return false
	}
	acted := r.removeLeftovers(ctx, d, in)
	if len(r.failures) > 0 || r.outOfTime || d.Finalizer != operator.FinalizerRemove {
		return acted && len(r.failures) == 0 && !r.outOfTime
	}
	if d.Before != nil && d.Before.Action != operator.ActionNone && !r.Act(ctx, d, in) {
		return false
	}
	if err := r.ReleaseEarlier(ctx); err != nil {
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
	r.reporter().Deletion(r.Memory, d, r.failures, r.ReportedState)
	if len(r.failures) > 0 || r.HasFailed {
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
	after = minNonZero(after, r.StatusDelay)
	if !r.TrustedUntil.IsZero() {
		after = minNonZero(after, r.TrustedUntil.Sub(r.Began))
	}
	if len(d.Leftovers) == 0 && !r.IsUnwatched {
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
	report, _ = r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOfDeletion(report) })
	if report.Verdict.Reason == "" { // there is nothing left to report on but a request that failed
		return status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonDeleting}
	}
	return report.Verdict
}

// writeFinalizer adds the finalizer, or puts it in the place of the previous one. It returns false if that failed.
func (r *reconciliation) writeFinalizer(ctx context.Context, what operator.FinalizerAction) bool {
	doing, err := r.WriteFinalizer(ctx, what)
	if err != nil {
		r.failUpstream(doing, err)
	}
	return err == nil
}

func (r *reconciliation) removeFinalizer(ctx context.Context) bool {
	err := r.RemoveFinalizer(ctx)
	if err != nil {
		r.failUpstream("removing the finalizer", err)
	}
	return err == nil
}
