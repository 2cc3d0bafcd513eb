package reconcile

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// keepTerminating keeps the generated values of objects of ours that are being deleted at their targets.
func (r *reconciliation) keepTerminating(ctx context.Context, in operator.Input) {
	if r.Pipeline.Observing() {
		return
	}
	for k, f := range in.Facts {
		i := in.Desired.Objects[k].Downstream
		if f.Live == nil || !f.Live.Deleting || !r.Pipeline.Downstreams[i].HasGenerated() || !marks.OwnsFor(r.Pipeline.Downstreams[i].Downstream, f.Live, r.Upstream.GetUID(), f.Trusted) {
			continue
		}
		o := r.OutcomeOf(i, operator.Ref{Namespace: f.Live.Namespace, Name: f.Live.Name})
		o.Object, o.UID, o.Live = k, f.Live.UID, f.Live
		if err := r.actor(in).KeepGenerated(ctx, o); err != nil {
			r.fail(o, err)
		}
	}
}
