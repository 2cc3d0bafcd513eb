package attempt

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/status"
)

// GatherDeletion gathers what a decision about a deletion depends on. It reads objects that the status records and the
// cache does not have, once it is the downstreams' turn.
func (r *Attempt) GatherDeletion(ctx context.Context) (operator.Input, error) {
	lost := observe.ReferencesLost(r.State)
	in := operator.Input{Upstream: r.Upstream, Desired: r.Memory.Desired(), HasFinalizer: true,
		Now: r.Began, Cascade: r.Cascade(), ReferencesLost: lost}
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

// ReportDeletion writes the status of an upstream that is being deleted, if it changes, and returns the verdict of
// Ready.
func (r *Attempt) ReportDeletion(ctx context.Context, d operator.Decision) status.Verdict {
	failed := r.FailuresByDownstream()
	if f := r.Memory.Before.Edit().FailureOf(d.Before); f != nil {
		failed[operator.BeforeIndex] = f
	}
	wanted := report.Deletion(r.Pipeline.Settings, r.Upstream, d, failed, r.Unrecorded(), metav1.NewTime(r.Began))
	wanted, _ = r.WriteReport(ctx, wanted, func() canonical.Sum { return r.CauseOfDeletion(wanted) })
	if wanted.Verdict.Reason == "" { // there is nothing left to report on but a request that failed
		return status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonDeleting}
	}
	return wanted.Verdict
}
