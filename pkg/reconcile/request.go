package reconcile

import "github.com/corollary-dev/corollary/pkg/pipeline"

// handleReconcileRequest starts over where somebody asks for a reconciliation at the upstream, by a new value of the annotation that the config names:
// what failed is tried again at once, what probes answered is asked again, and a back-off from another writer ends. That
// the upstream is looked at, and rendered, a changed annotation does by itself.
func (l *reconciliation) handleReconcileRequest() {
	convention := l.Pipeline.Config.Conventions.Reconcile
	if convention == nil {
		return
	}
	asked := l.upstream.GetAnnotations()[convention.Annotation]
	if asked == l.record.requested {
		return
	}
	l.record.requested = asked
	if asked == "" { // taken away: that asks for nothing
		return
	}
	l.record.refused = pipeline.RefusedFields{}
	l.record.retry, l.record.statusContest, l.record.finalizerContest = retryState{}, contest{}, contest{}
	for i := range l.record.targets {
		l.record.targets[i].startOver()
	}
}

// startOver forgets what keeps a downstream from being worked on, and nothing of what is known of the object.
func (t *target) startOver() {
	t.retry, t.failure = retryState{}, nil
	t.contest.unsettled, t.dryRunAnswer = 0, nil
	t.verdict, t.verdictFor = pipeline.Verdict{}, verdictKey{}
}
