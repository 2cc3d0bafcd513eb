package reconcile

import (
	"context"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// settle notes that Reconcile would have nothing to do for the upstream that was counted: every object is in sync, and the status says
// so. A start reconciles such an upstream only at its next event. What depends on time, or on what only Reconcile finds out, is never
// settled.
func (r *reconciliation) settle(ctx context.Context, d pipeline.Decision) {
	rec, p := r.record, r.Pipeline
	isPlain := r.selected && !p.HasRows() && !p.OnlyDeletes && p.Before == nil && rec.refused.part == nil && len(rec.desired.Invalid) == 0
	if !isPlain || len(r.unseen) > 0 || !r.trustedUntil.IsZero() || !isInSync(d) {
		return
	}
	report := p.Report(ctx, r.upstream, r.inputsRead(), rec.desired, r.results(d), nil, metav1.NewTime(r.now))
	if report.Status == nil || len(report.Dropped) > 0 || r.needsStatusWrite(report) || ctx.Err() != nil || r.noSlot {
		return
	}
	if r.nextReconciliation(d) == 0 {
		rec.settled = unique.Make(report.Verdict)
	}
}

// isInSync reports whether all objects are in sync and nothing else is to be done, now or later.
func isInSync(d pipeline.Decision) bool {
	return !d.Pending() && len(d.Leftovers) == 0 && !slices.ContainsFunc(d.Outcomes, func(o pipeline.Outcome) bool {
		return o.State != pipeline.StateInSync || o.Live == nil || o.Theirs || o.RequeueAfter > 0
	})
}

// unsettle has Reconcile look after the upstream again.
func (r *record) unsettle() {
	if r != nil {
		r.settled = unique.Handle[status.Verdict]{}
	}
}

// Settled reports whether Reconcile has nothing to do for an upstream, as of when it was counted. If so, it counts it in the metrics.
// Nothing may be reconciled or counted meanwhile.
func (r *Reconciler) Settled(ref pipeline.Ref) bool {
	rec := r.memory.peek(ref)
	if rec == nil || rec.settled == (unique.Handle[status.Verdict]{}) {
		return false
	}
	states := make([]countedState, len(rec.desired.Objects))
	for k := range states {
		states[k] = countedState{rec.desired.Objects[k].Downstream, pipeline.StateInSync}
	}
	r.countStates(rec, states)
	r.countVerdict(rec, rec.settled.Value())
	rec.wasReconciled = true
	rec.unsettle()
	return true
}
