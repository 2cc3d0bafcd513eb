package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/status"
)

// isLeftOver reports whether an upstream that is not selected keeps its downstreams: it is paused, its status says so
// already, or it was not seen leaving, and its status does not say that they are being removed, or said so of others,
// before one of them was made.
func (r *reconciliation) isLeftOver() bool {
	switch {
	case r.Upstream.GetDeletionTimestamp() != nil:
		return false
	case r.Pipeline.Paused(r.Upstream), report.SaysLeftover(r.Pipeline.Settings, r.Upstream):
		return true // also after a pause: its downstreams are unmanaged until it is selected again
	case r.Deselected.Has(r.Ref, r.Upstream.GetUID()), r.predecessor.sawLeaving(r.Reconciler, r.Ref, r.Upstream.GetUID()):
		return false
	case !report.SaysNotSelected(r.Pipeline.Settings, r.Upstream):
		return true
	}
	recorded := r.Pipeline.EverRecorded(r.Upstream)
	isNew := func(own *drift.Live) bool {
		return !slices.ContainsFunc(recorded, func(rec status.Recorded) bool { return rec.UID == own.UID })
	}
	return r.Pipeline.Config.Status.Downstreams != "" && slices.ContainsFunc(r.Owned(), isNew)
}

// isOthers reports whether this operator has not written to the upstream, as the API server records it. If that cannot
// be read, it may be, and is asked again with the next event.
func isOthers(ctx context.Context, r *reconciliation) bool {
	up, err := r.ReadUpstream(ctx, r.Ref)
	if err != nil {
		r.leftBehind.Forget(r.Upstream.GetUID())
	}
	return err != nil || !marks.HasManager(r.Pipeline.Settings, up)
}

// withoutOthersStatus reads an upstream that the cache has and whose namespace is not selected: the cache does not say
// who wrote its status. It returns nil if there is nothing to undo.
func withoutOthersStatus(ctx context.Context, r *reconciliation) (*reconciliation, error) {
	up, err := r.ReadUpstream(ctx, r.Ref)
	if errors.Is(err, apply.ErrGone) || err == nil && up.GetUID() != r.Upstream.GetUID() {
		return nil, nil // its event is on its way
	}
	if err != nil {
		return nil, err
	}
	marks.RemoveOthersStatus(r.Pipeline.Settings, up)
	if r.Upstream = up; r.hasNothing() {
		r.forget(r.Ref)
		return nil, nil
	}
	return r, nil
}

// findLeftBehind enqueues the upstreams that the session before worked on and that this one does not select, to be
// reported once: their downstreams need not be watched any more.
func (r *Reconciler) findLeftBehind(before *Reconciler) {
	if r.Pipeline.HasRows() {
		return
	}
	for ref := range before.memory.UIDs() {
		if r.Cache.UpstreamUID(ref) != "" {
			continue
		}
		if !r.Cache.Watches(ref.Namespace) {
			r.leftBehind.Drop(ref)
		}
		r.Host.Enqueue(ref)
	}
}

// reportLeftover has the status of an upstream that is left over say so, once: without a change of the config nothing
// would tell. Another process that uses the same conventions may select it, and then overwrites that.
func (r *reconciliation) reportLeftover(ctx context.Context) {
	if !r.isLeftOver() || r.isCounting() || r.Pipeline.HasRows() || !r.Pipeline.StatusEnabled() ||
		report.SaysLeftover(r.Pipeline.Settings, r.Upstream) ||
		!report.SaysItIsKept(r.Pipeline.Settings, r.Upstream) && len(r.Owned()) == 0 {
		return
	}
	ctx, leave, ok := r.enterShard(ctx)
	if !ok {
		return
	}
	defer leave()
	if r.leftBehind.IsNew(r.Upstream.GetUID()) && !isOthers(ctx, r) {
		r.WriteReport(ctx, report.Leftover(r.Pipeline.Settings, r.Upstream, r.Pipeline.Match(r.Upstream).Unmet,
			r.Unrecorded(), metav1.NewTime(r.Began)), func() canonical.Sum { return canonical.Sum{} })
		logging.Warn(r.Log, "left over: a changed config does not select the upstream any more", "upstream", r.Ref.String())
	}
}

// reportDropped is reportLeftover for an upstream in a namespace that is no longer watched, and that others may look
// after by now. It is tried once: the right to write there may be gone, too.
func (r *Reconciler) reportDropped(ctx context.Context, ref operator.Ref) error {
	if r.isCounting() || !r.leftBehind.Take(ref) {
		return nil
	}
	up, err := r.ReadUpstream(ctx, ref)
	if errors.Is(err, apply.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	r.newReconciliation(ref, up).reportLeftover(ctx)
	return nil
}

// awaitConfig is after how long a decision is made again that deletes something, now or once its successor exists,
// while it waits for a changed config; zero: it is carried out.
func (r *reconciliation) awaitConfig(d operator.Decision) time.Duration {
	deletes := func(o operator.Outcome) bool {
		return o.Action == operator.ActionDelete || o.Action == operator.ActionNone && o.State == operator.StateSuperseded
	}
	if !slices.ContainsFunc(d.Leftovers, deletes) && !slices.ContainsFunc(d.Outcomes, deletes) {
		return 0
	}
	return r.Host.DeletesLater(r.Ref, r.Selected)
}
