package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/status"
)

// waitsForNothing is for an upstream that neither guard nor a rollout holds: nothing of it is changed by the config.
func waitsForNothing(r *Reconciler, ref operator.Ref) {
	r.Host.MayProceed(ref, guard.Counted{}, true)
	r.Host.Rollout().Forget(ref)
}

// Yield forgets what is known of an upstream that is another reconciler's now, and counts it no more.
func Yield(r *Reconciler, ref operator.Ref) { r.forget(ref) }

// YieldAll is Yield for all upstreams that are known.
func YieldAll(r *Reconciler) {
	for ref := range r.memory.UIDs() {
		r.forget(ref)
	}
}

// noteForRollout notes what the changed config does to an upstream, before any is changed.
func (r *reconciliation) noteForRollout(ctx context.Context, d operator.Decision, paused bool) {
	if r.Host.Rollout() == nil || !r.Selected {
		return
	}
	order, err := r.Pipeline.OrderOf(ctx, r.Upstream)
	if err != nil {
		logging.Warn(r.Log, "rollout.order gives an error for an upstream: it comes last", "upstream", r.Ref.String(),
			"message", err.Error())
	}
	found := rollout.Survey(r.Pipeline.Settings, r.Upstream, r.Memory.Desired(), d, r.Began)
	found.Paused = paused
	r.Host.Rollout().Note(r.Ref, found, order)
}

// heldByRollout reports whether the changed config has yet to reach the upstream.
func (r *reconciliation) heldByRollout(d operator.Decision) bool {
	switch {
	case !r.Selected: // which is not about the config
		r.Host.Rollout().Forget(r.Ref)
		return false
	case r.Pipeline.Paused(r.Upstream): // which does nothing, and says so
		r.Host.Rollout().SetAside(r.Ref)
		return false
	case !r.Host.Rollout().MayHold(r.Ref):
		return false
	}
	return !r.Host.Rollout().Admit(r.Ref,
		rollout.Survey(r.Pipeline.Settings, r.Upstream, r.Memory.Desired(), d, r.Began))
}

// holdForRollout is what is done for an upstream that the changed config has yet to reach: nothing but what its
// deletion would lose. It returns after how long to try again.
func (r *reconciliation) holdForRollout(ctx context.Context) time.Duration {
	switch served, busy := r.Host.Rollout().IsServed(r.Ref); {
	case busy:
		return soonAgain
	case served: // the config before looks after it
		Yield(r.Reconciler, r.Ref)
		return 0
	}
	held := report.Held(r.Pipeline.Settings, r.Upstream, r.Unrecorded(), report.HeldByRollout, metav1.NewTime(r.Began))
	r.WriteReport(ctx, held, func() canonical.Sum { return r.CauseOf(nil, nil) })
	return attempt.MinNonZero(r.Save(ctx), r.NextForUpstream())
}

// soonAgain is after how long an upstream is looked at again that the config before is at work on.
const soonAgain = 50 * time.Millisecond

// yields reports whether the upstream is no longer one of the config before: what was edited, or is being deleted, is
// the changed one's.
func (r *reconciliation) yields() bool {
	trails, keeps := r.Host.Trails()
	return trails && (r.Upstream.GetDeletionTimestamp() != nil || !keeps && r.Pipeline.EditedSince(r.Upstream))
}

// observeForRollout reports to the rollout what has become of the upstream.
func (r *reconciliation) observeForRollout(
	ctx context.Context, d operator.Decision, verdict status.Verdict, results []operator.Result,
) {
	if !r.Host.Rollout().IsOpen() {
		return
	}
	left := rollout.Survey(r.Pipeline.Settings, r.Upstream, r.Memory.Desired(), d, r.Began)
	r.Host.Rollout().Observe(r.Ref, rollout.Outcome{Applied: !left.Changes, Ready: verdict.Ready == metav1.ConditionTrue,
		Reason: verdict.Reason, Halts: r.Pipeline.Halting(ctx, r.Upstream, r.InputsRead(), results)})
}
