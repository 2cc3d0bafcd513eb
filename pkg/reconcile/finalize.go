package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/status"
)

// finalize handles an upstream that is being deleted: first deletion.before, if the config has it; then the objects
// with the upstream's owner mark in the cache, and those that its status records, are deleted or released; then the
// finalizer is removed. For the downstreams it needs neither template nor rule.
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
	for range attempt.MaxRounds {
		in, err := r.GatherDeletion(ctx)
		switch {
		case errors.Is(err, apply.ErrGone):
			r.forget(r.Ref)
			return 0
		case err != nil:
			r.RequestFailed("reading the object recorded in the status", err)
			r.ReportDeletion(ctx, operator.Decision{WaitsForBefore: true})
			r.tally().Verdict(r.Memory, deleting)
			return r.RetryLater()
		}
		d = decide.Deletion(r.Pipeline.Settings, in)
		if r.AwaitOthers(in, d) {
			continue
		}
		r.Notify(func(o attempt.Observer) { o.Decided(in, d) })
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

// actDeletion carries out a decision, the finalizer last. It reports whether anything was done, so that deciding again
// may bring something new.
func (r *reconciliation) actDeletion(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if d.WaitsForBefore {
		return d.Before.Action != operator.ActionNone && r.Act(ctx, d, in)
	}
	if err := releaseHolders(ctx, r, d.Kept); err != nil {
		r.RequestFailed("releasing an object that contains what stays", err)
		return false
	}
	acted := r.RemoveLeftovers(ctx, d, in)
	if len(r.Failures) > 0 || r.OutOfTime || d.Finalizer != operator.FinalizerRemove {
		return acted && len(r.Failures) == 0 && !r.OutOfTime
	}
	if d.Before != nil && d.Before.Action != operator.ActionNone && !r.Act(ctx, d, in) {
		return false
	}
	if err := r.ReleaseEarlier(ctx); err != nil {
		r.RequestFailed("releasing the object of an earlier deletion.before", err)
		return false
	}
	if !r.TakeFinalizer(ctx) {
		return false
	}
	// The upstream is forgotten once the watch shows it gone: until then the cache may have it with its finalizer.
	r.Log.Info("upstream cleaned up", "upstream", r.Ref.String(), "objects", len(d.Leftovers))
	r.finalized, r.Memory.Steps.IsFinalized = true, true
	return true
}

// reportHeld reports on an upstream whose deletion is held, and returns after how long to check again.
func (r *reconciliation) reportHeld(ctx context.Context, d operator.Decision) time.Duration {
	r.tally().Verdict(r.Memory, r.ReportDeletion(ctx, d))
	r.Reporter().Deletion(r.Memory, d, r.Failures, r.ReportedState)
	if len(r.Failures) > 0 || r.HasFailed {
		return r.RetryLater()
	}
	if r.OutOfTime {
		return time.Millisecond
	}
	var after time.Duration
	if h := d.Before; h != nil {
		m := r.Memory.Before.Edit()
		r.tally().Before(r.Memory, h.State)
		if (h.Theirs || h.Action != operator.ActionNone) && m.Retry.Wait(r.Memory.Cause(), r.Began) == 0 {
			r.Delay(&m.Retry)
		}
		after = attempt.MinNonZero(h.RequeueAfter, m.Retry.Wait(r.Memory.Cause(), r.Began))
	}
	after = attempt.MinNonZero(after, r.StatusDelay)
	if !r.TrustedUntil.IsZero() {
		after = attempt.MinNonZero(after, r.TrustedUntil.Sub(r.Began))
	}
	if len(d.Leftovers) == 0 && d.Awaited == nil && !r.IsUnwatched {
		return after
	}
	waiting := &r.Memory.Notes.Edit().Waiting
	wait := waiting.Wait(r.Memory.Cause(), r.Began)
	if wait == 0 {
		wait = r.Delay(waiting)
	}
	return attempt.MinNonZero(after, wait)
}

// watchLagsDeletion reports whether an upstream is being deleted and its watch, which has it, has not shown that yet. A
// response, or the cache before the event is handled, may lack what the deletion asks for.
func (r *reconciliation) watchLagsDeletion() bool {
	return !r.Cascades.Knows(r.Upstream.GetUID()) && r.Cache.UpstreamUID(r.Ref) == r.Upstream.GetUID()
}

// releaseHolders takes our marks off forgotten objects that are kept because of what they contain, before that loses
// its own.
func releaseHolders(ctx context.Context, r *reconciliation, kept []operator.ForgottenObject) error {
	for _, f := range kept {
		t, obj, err := r.ReadForgotten(ctx, &f.Recorded)
		if err == nil && obj != nil {
			_, err = r.API.Release(ctx, t, obj, apply.Marks(marks.Of(r.Pipeline.Settings, r.Upstream.GetUID(), 0)))
		}
		if err != nil {
			return fmt.Errorf("%w; %s of downstream %s, which the config no longer has, cannot be released (%s): allow get "+
				"and patch on %s",
				err, f.Kind, f.Name, f.Kept, f.Resource)
		}
		if obj == nil {
			continue
		}
		r.Log.Info("released", "upstream", r.Ref.String(), "downstream", f.Name, "kind", f.Kind, "target",
			f.ObjectName, "why", f.Kept)
		r.Reporter().Event(false, events.EventReleased, "Release", "%s %s released: %s", f.Kind, f.ObjectName, f.Kept)
	}
	return nil
}
