package reconcile

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// watchLagsDeletion reports whether an upstream is being deleted and its watch, which has it, has not shown that yet. A
// response, or the cache before the event is handled, may lack what the deletion asks for.
func (r *reconciliation) watchLagsDeletion() bool {
	return !r.cascades.Knows(r.Upstream.GetUID()) && r.Cache.UpstreamUID(r.Ref) == r.Upstream.GetUID()
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
