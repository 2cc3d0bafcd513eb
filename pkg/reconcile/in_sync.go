package reconcile

import (
	"context"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// noteInSync notes whether Reconcile would have nothing to do for the upstream that guard counts: every object is as it should be, and
// the status says so. A start does not reconcile such an upstream before its next event.
func (r *reconciliation) noteInSync(ctx context.Context, d pipeline.Decision) {
	if !r.onlyEventsMatter() || !isInSync(d) {
		return
	}
	report := r.Pipeline.Report(ctx, r.upstream, r.inputsRead(), r.record.desired, r.results(d), nil, metav1.NewTime(r.now))
	if report.Status == nil || len(report.Dropped) > 0 || r.needsStatusWrite(report) || ctx.Err() != nil || r.noSlot {
		return
	}
	if r.nextReconciliation(d) == 0 {
		r.record.inSync = unique.Make(report.Verdict)
	}
}

// onlyEventsMatter reports whether the upstream needs nothing until a watch has an event. Rows and deletion.before have their own state;
// with shards, Reconcile may have to take back that the upstream waits for a name.
func (r *reconciliation) onlyEventsMatter() bool {
	p := r.Pipeline
	return r.selected && !p.HasRows() && !p.OnlyDeletes && p.Before == nil && r.Shards == nil &&
		!r.record.refused.isSet() && len(r.record.desired.Invalid) == 0 && len(r.unseen) == 0 && r.trustedUntil.IsZero()
}

// isInSync reports whether all objects are in sync, or not wanted and not there, and nothing else is to be done, now or later.
func isInSync(d pipeline.Decision) bool {
	return !d.Pending() && len(d.Leftovers) == 0 && !slices.ContainsFunc(d.Outcomes, func(o pipeline.Outcome) bool {
		is := o.State == pipeline.StateInSync && o.Live != nil || o.State == pipeline.StateUnwanted && o.Live == nil
		return !is || o.Theirs || o.RequeueAfter > 0
	})
}

// clearInSync has the upstream reconciled again.
func (r *record) clearInSync() {
	if r != nil {
		r.inSync = unique.Handle[status.Verdict]{}
	}
}

// IsInSync reports whether Reconcile has nothing to do for the upstream of that name and uid, according to its last count. What happened
// since then has an event.
func (r *Reconciler) IsInSync(ref pipeline.Ref, uid types.UID) bool {
	rec := r.memory.peek(ref)
	return rec != nil && rec.uid == uid && rec.inSync != (unique.Handle[status.Verdict]{})
}

// CountInSync counts an upstream that IsInSync in the metrics, as Reconcile would. No worker may be at work.
func (r *Reconciler) CountInSync(ref pipeline.Ref) {
	rec := r.memory.peek(ref)
	if rec == nil {
		return
	}
	states := make([]countedState, len(rec.desired.Objects))
	for k, o := range rec.desired.Objects {
		states[k] = countedState{o.Downstream, pipeline.StateInSync}
		if !o.Wanted {
			states[k].state = pipeline.StateUnwanted
		}
	}
	r.countStates(rec, states)
	r.countVerdict(rec, rec.inSync.Value())
	rec.wasReconciled = true
	rec.clearInSync()
}
