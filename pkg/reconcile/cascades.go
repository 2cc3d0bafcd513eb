package reconcile

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// watchLagsDeletion reports whether an upstream is being deleted and its watch, which has it, has not shown that yet. A
// response, or the cache before the event is handled, may lack what the deletion asks for.
func (r *reconciliation) watchLagsDeletion() bool {
	return !r.cascades.Knows(r.Upstream.GetUID()) && r.Cache.UpstreamUID(r.Ref) == r.Upstream.GetUID()
}

// propagation is how the downstreams of an upstream are deleted.
func (r *reconciliation) propagation() metav1.DeletionPropagation {
	if r.Upstream.GetDeletionTimestamp() != nil && r.Cascade() == operator.CascadeForeground {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation)
}

// mayBeCollected reports whether the upstream must be read before a decision is carried out, because it may be gone. The events
// of the garbage collector's work may come before that of the upstream's deletion: what it deleted would be created again, a
// Job run again; and an owner reference that it removed with --cascade=orphan would, once set again, have the object deleted.
func (r *reconciliation) mayBeCollected(d *operator.Decision) bool {
	return slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool {
		switch {
		case !r.Memory.Desired().Objects[o.Object].Reference || o.Theirs:
			return false
		case o.Action == operator.ActionCreate: // with our finalizer it is not gone
			return !r.HasFinalizer() && r.Memory.Object(o.Object).UID != ""
		}
		return o.Action == operator.ActionApply && o.Live != nil && !marks.Marked(o.Live, r.Upstream.GetUID())
	})
}
