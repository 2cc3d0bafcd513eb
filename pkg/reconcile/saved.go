package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
)

// hold is what is done for an upstream while guard holds its changes. It returns after how long to try again.
func (r *reconciliation) hold(ctx context.Context) time.Duration {
	if r.Host.GuardWaits() {
		report := report.Held(r.Pipeline.Settings, r.Upstream, r.Unrecorded(), report.HeldByGuard,
			metav1.NewTime(r.Began))
		r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOf(nil, nil) })
	}
	return attempt.MinNonZero(r.Save(ctx), r.NextForUpstream())
}

// awaitDeletion is what a session that only deletes does for an upstream that is not being deleted: it gets the
// finalizer if its deletion would lose something. It is checked again at an event, or now and then if it lacks the
// label of the watch.
func (r *reconciliation) awaitDeletion(ctx context.Context) time.Duration {
	after := r.Save(ctx)
	if r.Cache.UpstreamUID(r.Ref) != "" {
		return after
	}
	return attempt.MinNonZero(after, r.Delay(&r.Memory.Notes.Edit().Waiting))
}

// saveUnknown is Save for an upstream of which nobody knows whether it is one. It is forgotten until its next event.
func (r *reconciliation) saveUnknown(ctx context.Context) time.Duration {
	after := r.Save(ctx)
	if after == 0 {
		r.forget(r.Ref)
	}
	return after
}
