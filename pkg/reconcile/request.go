package reconcile

// handleReconcileRequest starts over if somebody requests a reconcile of the upstream by a new value of the annotation in
// conventions.reconcile. Any changed annotation has the upstream rendered and reconciled.
func (r *reconciliation) handleReconcileRequest() {
	if convention := r.Pipeline.Config.Conventions.Reconcile; convention != nil {
		r.Memory.Request(r.Upstream.GetAnnotations()[convention.Annotation])
	}
}
