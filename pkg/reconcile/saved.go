package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// hold is what is done for an upstream while guard holds its changes. It returns after how long to try again.
func (r *reconciliation) hold(ctx context.Context) time.Duration {
	if r.Host.GuardWaits() {
		report := report.Held(r.Pipeline.Settings, r.Upstream, r.Unrecorded(), metav1.NewTime(r.Began))
		r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOf(nil, nil) })
	}
	return minNonZero(r.save(ctx), r.nextForUpstream())
}

// save keeps the deletion of an upstream, of which all else is left as it is, from losing what the config keeps: guard holds what changes
// downstreams, not what saves them. It returns after how long to try again.
func (r *reconciliation) save(ctx context.Context) time.Duration {
	in := operator.Input{Upstream: r.Upstream, Desired: r.Memory.Desired(), HasFinalizer: r.HasFinalizer(), Leftovers: r.WithUnseen(r.FindLeftovers(nil, r.OwnedByDownstream())),
		FinalizerSpaced: r.FinalizerSpaced()}
	d := decide.Save(r.Pipeline.Settings, in)
	if d.Finalizer == operator.FinalizerAdd && !r.writeFinalizer(ctx, d.Finalizer) {
		return r.retryLater()
	}
	if r.removeLeftovers(ctx, &d, in); len(r.failures) > 0 {
		return r.retryLater()
	}
	return in.FinalizerSpaced
}

// awaitDeletion is what a session that only deletes does for an upstream that is not being deleted: it gets the finalizer if its deletion
// would lose something. It is checked again at an event, or now and then if it lacks the label of the watch.
func (r *reconciliation) awaitDeletion(ctx context.Context) time.Duration {
	after := r.save(ctx)
	if r.Cache.UpstreamUID(r.Ref) != "" {
		return after
	}
	return minNonZero(after, r.delay(&r.Memory.Notes.Edit().Waiting))
}

// saveUnknown is save for an upstream of which nobody knows whether it is one. It is forgotten until its next event.
func (r *reconciliation) saveUnknown(ctx context.Context) time.Duration {
	after := r.save(ctx)
	if after == 0 {
		r.forget(r.Ref)
	}
	return after
}

// saveRefused takes the owner reference off an object that deletionPolicy keeps and whose update failed.
func (r *reconciliation) saveRefused(ctx context.Context, o operator.Outcome, in operator.Input) {
	own := operator.Owned{Downstream: o.Downstream, Live: o.Live, Certain: true}
	if o.Action != operator.ActionApply || o.Theirs || !decide.IsCollected(r.Pipeline.Settings, in, own) {
		return
	}
	o.Action = operator.ActionMarkOwner
	if err := r.actor(in).Do(ctx, &o); err != nil { // it is tried again with the apply
		r.Log.Info("taking the owner reference off what is kept failed", "upstream", r.Ref.String(), "target", o.Target.String(), "error", err.Error())
	}
}
