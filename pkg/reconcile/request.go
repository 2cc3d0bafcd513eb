package reconcile

// handleReconcileRequest starts over if somebody requests a reconcile of the upstream by a new value of the annotation in
// conventions.reconcile: failures are retried at once, probes and dry runs are repeated, and a backoff from another writer
// ends. Any changed annotation has the upstream rendered and reconciled.
func (r *reconciliation) handleReconcileRequest() {
	convention := r.Pipeline.Config.Conventions.Reconcile
	if convention == nil {
		return
	}
	asked := r.upstream.GetAnnotations()[convention.Annotation]
	if asked == r.record.unusual.get().requested {
		return
	}
	u := r.record.unusual.edit()
	u.requested = asked
	if asked == "" { // taken away: that asks for nothing
		return
	}
	u.refused, u.slow = refusedFields{}, retryState{}
	r.record.retry.reset()
	r.record.contests.reset()
	r.record.items = nil
	for i := range r.record.objects {
		r.record.objects[i].startOver()
	}
}

// startOver drops everything that delays work on a downstream, and nothing that is known about the object.
func (t *target) startOver() {
	t.retry.reset()
	t.probed.reset()
	t.failure, t.dryRunAnswer = nil, nil
	if v := t.unusual.get().verified; v.stale != "" {
		t.unusual.edit().verified.isPending = true
	}
	if t.contest.get().unsettled > 0 {
		t.contest.edit().unsettled = 0
	}
}
