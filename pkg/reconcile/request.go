package reconcile

import "github.com/corollary-dev/corollary/pkg/pipeline"

// handleReconcileRequest starts over where somebody asks for a reconciliation at the upstream, by a new value of the annotation that the config names:
// what failed is tried again at once, what probes answered is asked again, and a back-off from another writer ends. That
// the upstream is looked at, and rendered, a changed annotation does by itself.
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
	for i := range r.record.targets {
		r.record.targets[i].startOver()
	}
}

// startOver forgets what keeps a downstream from being worked on, and nothing of what is known of the object.
func (t *target) startOver() {
	t.retry, t.failure = retryState{}, nil
	t.contest.unsettled, t.dryRunAnswer = 0, nil
	t.verdict, t.verdictFor = pipeline.Verdict{}, verdictKey{}
}
