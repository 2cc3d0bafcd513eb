package reconcile

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// Count does what Reconcile does, but counts instead of acting, and notes for IsInSync whether there is nothing to do;
// with cleansUp, an upstream that is being deleted is finalized, and one whose deletion would lose what the config
// keeps gets the finalizer. It returns the count and after how long to count again: because no watch shows a change,
// or, if failed is true, because the upstream could not be counted, for which guard waits.
func (r *Reconciler) Count(
	ctx context.Context, ref operator.Ref, cleansUp bool,
) (c guard.Counted, after time.Duration, failed bool) {
	r.memory.Peek(ref).ClearInSync()
	l, err := r.beginAny(ctx, ref)
	if err != nil {
		return c, r.readFailed(ref, err), true
	}
	r.memory.Found(ref)
	if l == nil {
		return c, 0, false
	}
	defer l.ReleaseSlot()
	ctx, leave, ok := l.enterShard(ctx)
	if !ok {
		return c, 0, false
	}
	defer leave()
	switch {
	case l.unknown && cleansUp:
		return c, l.saveUnknown(ctx), false
	case l.unknown:
		r.forget(ref)
	case l.Upstream.GetDeletionTimestamp() == nil && r.Deselected.Some(ref):
		// its author took the label off, while a process ran
	case l.Upstream.GetDeletionTimestamp() == nil:
		defer func() { l.Memory.Desired().Forget() }()
		up, paused := preview.Resumed(l.Pipeline.Settings, l.Upstream)
		l.Upstream = up
		_, d := l.FirstDecision(ctx)
		_, c = preview.Count(ctx, l.Attempt, d)
		l.countFailing(d, &c)
		l.countChained(d, &c)
		l.noteForRollout(ctx, d, paused)
		if l.NoSlot || ctx.Err() != nil {
			return c, attempt.NoSlotDelay(), true
		}
		if !paused {
			l.noteCountedInSync(ctx, d)
		}
		if cleansUp {
			after = l.Save(ctx)
		}
		if !l.TrustedUntil.IsZero() {
			after = attempt.MinNonZero(after, time.Duration(r.Pipeline.Config.Retry.MaxDelay))
		}
	case cleansUp:
		return c, l.finalize(ctx), false
	}
	return c, after, false
}

// heldByGuard reports whether a decision must wait for the rest of its batch, or for a confirmation, whatever its
// author writes meanwhile: what follows from an edit and what from an input is not known apart.
func (r *reconciliation) heldByGuard(ctx context.Context, d operator.Decision) bool {
	if !r.Host.CountedByGuard(r.Ref) && !r.IsGoneRow() { // what a row that is gone leaves is counted in any case
		return false
	}
	if up, paused := preview.Resumed(r.Pipeline.Settings, r.Upstream); paused {
		defer func(was *unstructured.Unstructured) { r.Upstream = was }(r.Upstream)
		r.Upstream = up
		_, d = r.FirstDecision(ctx)
	}
	c := guard.CountOf(r.Pipeline.Settings, r.Memory.Desired(), preview.WithRecreations(ctx, r.Attempt, d), r.Recorded())
	r.countChained(d, &c)
	restricted := c.Deleted > 0 || c.Changed > 0 && r.Pipeline.Config.Guard.MaxChanged != ""
	return !r.Host.MayProceed(r.Ref, c, !restricted)
}

// Preview returns what Reconcile would do for one upstream; nil if there is nothing to report. It writes and remembers
// nothing.
func (r *Reconciler) Preview(ctx context.Context, ref operator.Ref, o preview.Options) (*preview.Finding, error) {
	l, err := r.begin(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s %s: %w", r.Pipeline.Upstream.GVK.Kind, ref, err)
	}
	if l == nil {
		return nil, nil
	}
	defer r.memory.Forget(ref)
	return preview.Of(ctx, l.Attempt, o, l.isLeftOver)
}
