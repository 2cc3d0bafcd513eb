package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
)

// Rehearse decides what Reconcile would do, and counts it in the metrics of states, but does nothing: for a cluster
// that another one is active for. What is being deleted, or is no longer selected, is left to that one.
func (r *Reconciler) Rehearse(ctx context.Context, ref operator.Ref) time.Duration {
	if r.Cache.UpstreamUID(ref) == "" {
		return r.StandBy(ctx, ref)
	}
	l, err := r.begin(ctx, ref)
	if err != nil {
		return r.readFailed(ref, err)
	}
	r.memory.Found(ref)
	if l == nil {
		return 0
	}
	defer l.ReleaseSlot()
	switch {
	case l.NoSlot:
		return attempt.NoSlotDelay()
	case l.Upstream.GetDeletionTimestamp() != nil, r.Pipeline.OnlyDeletes, !l.Selected:
		return 0
	}
	defer func() { l.Memory.Desired().Forget() }()
	_, d := l.FirstDecision(ctx)
	results := l.Results(d)
	r.tally().States(l.Memory, statesOf(results))
	report := r.Pipeline.Report(ctx, l.Upstream, l.InputsRead(), l.Memory.Desired(), results, d.Leftovers,
		l.Unrecorded(), metav1.NewTime(l.Began))
	r.tally().Verdict(l.Memory, report.Verdict)
	return 0
}

// standByWait bounds a read in StandBy, since nobody acts before it is done.
const standByWait = 5 * time.Second

// StandBy forgets an upstream that was seen leaving, once it is gone or the leader has cleaned up after it. It writes
// nothing: the next leader finds again what is to be done. It returns after how long to check again.
func (r *Reconciler) StandBy(ctx context.Context, ref operator.Ref) time.Duration {
	if !r.Deselected.Some(ref) || r.Cache.UpstreamUID(ref) != "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, standByWait)
	defer cancel()
	l, err := r.beginUncached(ctx, ref)
	if err == nil && (l == nil || l.unknown) {
		if l != nil {
			l.ReleaseSlot()
		}
		r.forget(ref)
		return 0
	}
	if err == nil {
		done := report.SaysNotSelected(l.Pipeline.Settings, l.Upstream) && len(l.Owned()) == 0 && !l.HasFinalizer()
		l.ReleaseSlot()
		if r.forget(ref); done {
			r.Deselected.Forget(ref)
			return 0
		}
	}
	return time.Duration(r.Pipeline.Config.Retry.MaxDelay)
}
