package reconcile

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// finish reports the result of a reconciliation and returns after how long to reconcile again.
func (r *reconciliation) finish(ctx context.Context, d operator.Decision) time.Duration {
	if !r.Selected {
		return r.finishUnselected(ctx, d)
	}
	results := r.Results(d)
	r.tally().States(r.Memory, statesOf(results))
	report := r.withoutGone(ctx, r.Pipeline.Report(ctx, r.Upstream, r.InputsRead(), r.Memory.Desired(), results,
		r.LeftToReport(d), r.Unrecorded(), metav1.NewTime(r.Began)))
	report, told := r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOf(results, d.Leftovers) })
	r.Reporter().Outcomes(r.Memory, d, r.Failures, r.ContestedBy, told)
	r.reportRow(report.Row)
	r.observeForRollout(ctx, d, report.Verdict, results)
	after := r.Next(d)
	switch {
	case report.TookTooLong || r.ReadsSlowInputs():
		after = attempt.MinNonZero(after, r.NoteSlow("the status"))
	case !r.Memory.Desired().TookTooLong():
		r.Memory.Notes.Set(false, func(n *memory.Notes) { n.Slow = memory.Retry{} })
	}
	r.tally().Verdict(r.Memory, report.Verdict)
	r.Memory.Tidy(r.Began)
	r.noteInSync(ctx, d, report.Verdict, after)
	return after
}

// withoutGone is a report without what the config has forgotten and is gone. That is asked where the status is to be
// written anyway, after an edit or at a start.
func (r *reconciliation) withoutGone(ctx context.Context, wanted report.Report) report.Report {
	if !r.NeedsWrite(wanted) || !r.Pipeline.EditedSince(r.Upstream) && r.Memory.Steps.WasReconciled {
		return wanted
	}
	return report.WithoutGone(r.Pipeline.Settings, wanted, r.Upstream, r.FindGone(ctx))
}

// finishUnselected is finish for an upstream that is no longer selected. Once that is reported, it is left alone.
func (r *reconciliation) finishUnselected(ctx context.Context, d operator.Decision) time.Duration {
	r.writeUnselected(ctx, d)
	if len(r.Failures) > 0 || r.HasFailed {
		return r.RetryLater()
	}
	if len(d.Leftovers) == 0 {
		r.Deselected.Forget(r.Ref)
	}
	after := attempt.MinNonZero(r.StatusDelay, r.NextForUnseen())
	for _, o := range slices.Concat(d.Outcomes, d.Leftovers) {
		after = attempt.MinNonZero(after, o.RequeueAfter)
	}
	if r.OutOfTime {
		return time.Millisecond
	}
	if after == 0 && len(d.Leftovers) == 0 {
		r.forget(r.Ref)
	}
	return after
}

func (r *reconciliation) writeUnselected(ctx context.Context, d operator.Decision) {
	report := report.Unselected(r.Pipeline.Settings, r.Upstream, r.Pipeline.Match(r.Upstream).Unmet, d,
		r.FailuresByDownstream(), r.Unrecorded(), metav1.NewTime(r.Began))
	r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOf(nil, d.Leftovers) })
}

// statesOf are the states in which results are counted.
func statesOf(results []operator.Result) []memory.State {
	states := make([]memory.State, len(results))
	for i, result := range results {
		states[i] = memory.State{Downstream: result.Outcome.Downstream, State: result.Outcome.State}
	}
	return states
}
