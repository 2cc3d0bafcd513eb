package reconcile

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/status"
)

// noteCountedInSync is noteInSync for an upstream that guard counts: Reconcile would not even write the status. A start
// does not reconcile such an upstream before its next event. With shards it does: the upstream may have waited for a
// name, which Reconcile takes back.
func (r *reconciliation) noteCountedInSync(ctx context.Context, d operator.Decision) {
	if r.Shards != nil || !r.onlyEventsMatter() || !isInSync(d) {
		return
	}
	report := r.Pipeline.Report(ctx, r.Upstream, r.InputsRead(), r.Memory.Desired(), r.Results(d), nil,
		r.Unrecorded(), metav1.NewTime(r.Began))
	if report.Status != nil && len(report.Dropped) == 0 && !report.TookTooLong && !r.NeedsWrite(report) {
		r.noteInSync(ctx, d, report.Verdict, r.Next(d))
	}
}

// noteInSync notes whether there is nothing to do for the upstream until a watch shows another state of it, of its
// objects or of its inputs: every object is as it should be, the status says so, and nothing is due later.
func (r *reconciliation) noteInSync(
	ctx context.Context, d operator.Decision, verdict status.Verdict, after time.Duration,
) {
	if after > 0 || ctx.Err() != nil || r.NoSlot || !r.onlyEventsMatter() || !isInSync(d) {
		return
	}
	r.Memory.NoteInSync(verdict)
}

// onlyEventsMatter reports whether the upstream needs nothing until a watch has an event. Rows and deletion.before have
// their own state.
func (r *reconciliation) onlyEventsMatter() bool {
	p := r.Pipeline
	return r.Selected && !p.HasRows() && !p.OnlyDeletes && p.Before == nil &&
		!report.Any(r.Memory.Notes.Get().Refused.Fields) && len(r.Memory.Desired().Invalid) == 0 &&
		len(r.Unseen) == 0 && r.TrustedUntil.IsZero()
}

// isInSync reports whether all objects are in sync, or not wanted and not there, and nothing else is to be done, now or
// later.
func isInSync(d operator.Decision) bool {
	return !d.Pending() && len(d.Leftovers) == 0 && !slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool {
		is := o.State == operator.StateInSync && o.Live != nil || o.State == operator.StateUnwanted && o.Live == nil
		return !is || o.Theirs || o.RequeueAfter > 0
	})
}

// CountInSync counts an upstream that IsInSync in the metrics, as Reconcile would. No worker may be at work.
func (r *Reconciler) CountInSync(ref operator.Ref) {
	rec := r.memory.Peek(ref)
	if rec == nil {
		return
	}
	r.tally().InSync(rec)
	rec.Steps.WasReconciled = true
}
