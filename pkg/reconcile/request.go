package reconcile

import "github.com/corollary-dev/corollary/pkg/pipeline"

// handleReconcileRequest starts over if somebody requests a reconcile of the upstream by a new value of the annotation in
// conventions.reconcile: failures are retried at once, probes and dry runs are repeated, and a backoff from another writer
// ends. Any changed annotation has the upstream rendered and reconciled.
func (r *reconciliation) handleReconcileRequest() {
	convention := r.Pipeline.Config.Conventions.Reconcile
	if convention == nil {
		return
	}
	asked := r.upstream.GetAnnotations()[convention.Annotation]
	if asked == r.record.requested {
		return
	}
	r.record.requested = asked
	if asked == "" { // taken away: that asks for nothing
		return
	}
	r.record.refused = pipeline.RefusedFields{}
	r.record.retry, r.record.statusContest, r.record.finalizerContest = retryState{}, contest{}, contest{}
	r.record.items = nil
	for i := range r.record.targets {
		r.record.targets[i].startOver()
	}
}

// startOver drops everything that delays work on a downstream, and nothing that is known about the object.
func (t *target) startOver() {
	t.retry, t.failure = retryState{}, nil
	t.contest.unsettled, t.dryRunAnswer = 0, nil
	t.verdict, t.verdictFor = pipeline.Verdict{}, verdictKey{}
}
