package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// isNewest reports whether the upstream was read since the last handover.
func (r *reconciliation) isNewest() bool {
	return int(r.Memory.Steps.NewestSince) == 1+r.Handovers()
}

// startOverAfter is when a reconciliation of an outdated upstream starts over, if no event comes before.
const startOverAfter = time.Second

// ensureLatest makes sure, by one request before the first write for an upstream that may be stale, that the cache has
// its latest version. If it does not, the reconciliation starts over after the returned time.
func (r *reconciliation) ensureLatest(ctx context.Context, d *operator.Decision) (after time.Duration, err error) {
	lost := r.IsInterrupted()
	if r.Pipeline.HasRows() || r.Pipeline.Observing() || !lost && !r.mayBeCollected(d) &&
		(r.isNewest() || !r.MayLag(r.Upstream.GetResourceVersion())) {
		return 0, nil
	}
	up, err := r.API.Latest(ctx, r.UpstreamTarget(r.Ref))
	switch {
	case errors.Is(err, apply.ErrGone), err == nil && up.GetUID() != r.Upstream.GetUID():
		r.Memory.NoteGone(r.Upstream.GetUID(), r.Began)
		return startOverAfter, nil
	case err != nil:
		return 0, err
	case memory.Newer(r.Upstream.GetResourceVersion(), up.GetResourceVersion()):
		// the cluster was set back: the watch is about to notice
		return startOverAfter, nil
	case r.isWatched(r.Upstream) && !r.isWatched(up): // the watch is about to say so
		return startOverAfter, nil
	}
	if r.Memory.Steps.NewestSince = 0; !lost {
		r.Memory.Steps.NewestSince = int32(1 + r.Handovers())
	}
	if up.GetResourceVersion() == r.Upstream.GetResourceVersion() {
		return 0, nil
	}
	r.Log.Info("the watch lags: using a newer version of the upstream, which another process may have acted on",
		"upstream", r.Ref.String())
	r.Memory.WroteUpstream(write.WithoutManagedFields(up), false)
	return time.Millisecond, nil
}

// mayBeCollected reports whether the upstream must be read before a decision is carried out, because it may be gone.
// The events of the garbage collector's work may come before that of the upstream's deletion: what it deleted would be
// created again, a Job run again; and an owner reference that it removed with --cascade=orphan would, once set again,
// have the object deleted.
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
