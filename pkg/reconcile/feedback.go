package reconcile

// This file separates changes by others from the effects of our own writes, where downstreams are made from objects of ours.

// noteItems records which objects the desired state has of each downstream with forEach.
func (r *reconciliation) noteItems() {
	for i, d := range r.Pipeline.Downstreams {
		if d.Several() {
			r.Memory.Items(i).Note(r.Memory.Desired(), i)
		}
	}
}
