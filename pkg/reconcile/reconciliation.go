package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// reconciliation is one reconcile of one upstream.
type reconciliation struct {
	*Reconciler
	*attempt.Attempt
	// unknown: a match condition could not be evaluated, so nobody knows whether it is an upstream.
	unknown bool
	// finalized is true once the finalizer is removed.
	finalized bool
}

func (r *Reconciler) newReconciliation(ref operator.Ref, up *unstructured.Unstructured) *reconciliation {
	if rec := r.memory.Peek(ref); rec != nil && rec.UID != up.GetUID() {
		r.forget(ref) // the one before was deleted between two reconciliations
		r.Cascades.Forget(rec.UID)
	}
	key := ref
	// it shares the memory of the cached upstream
	if at := (operator.Ref{Namespace: up.GetNamespace(), Name: up.GetName()}); at == ref {
		key = at
	}
	sources := observe.Sources{Pipeline: r.Pipeline, Cache: r.Cache, Removals: &r.memory.Removals,
		Cascades: &r.Cascades, Readers: &r.readers}
	st := &observe.State{Sources: sources, Ref: ref, Upstream: up,
		Memory: r.memory.Recall(key, up.GetUID()), Began: r.now()}
	session := attempt.Session{Slots: r.Slots, Client: r.Client, Kinds: r.Kinds, Awaited: &r.awaited,
		Token: r.Token, Observer: r.Observer,
		Mark: func(ref operator.Ref) string { return r.Host.Rollout().Mark(ref) }}
	if r.Shards != nil {
		session.ShardOf = r.Shards.Of
	}
	l := &reconciliation{Reconciler: r, Attempt: attempt.New(session,
		write.Session{Operator: r.Operator, Host: r.Host, Unstorable: &r.unstorable}, st, r.isCounting())}
	l.EnsureLatest = func(ctx context.Context) (time.Duration, error) { return l.ensureLatest(ctx, &operator.Decision{}) }
	l.BeforeFinalizer = func() { r.lostUpstreams.NoteFinalizer(up.GetUID(), st.Began) }
	l.PredecessorBaseline = l.predecessorBaseline
	l.Memory.ClearInSync()
	l.Memory.RenderSlowAgain(l.Began)
	return l
}

// hasNothing reports whether there is nothing to undo for an upstream that is not selected.
func (r *reconciliation) hasNothing() bool {
	return !r.HasFinalizer() && len(r.Owned()) == 0 && len(r.Memory.Notes.Get().Unconfirmed) == 0 &&
		!report.SaysItIsKept(r.Pipeline.Settings, r.Upstream)
}

// forgetGone is forget for an upstream that does not exist.
func (r *Reconciler) forgetGone(ref operator.Ref) {
	r.Cascades.Forget(r.Deselected.Forget(ref))
	r.shared.Forget(r.Name, ref.String())
	if r.Rows != nil {
		r.Rows.Forget(ref)
	}
	r.forget(ref)
}

// forget forgets what was done for an upstream. What the watch has shown of its deletion stays until the upstream is
// gone: the watch does not show it again.
func (r *Reconciler) forget(ref operator.Ref) {
	if rec := r.memory.Peek(ref); rec != nil {
		r.tally().Forget(rec)
		r.readers.Move(ref, rec.Inputs().Refs, nil)
		r.unstorable.Forget(ref)
		r.awaited.Set(ref, nil)
		r.memory.Forget(ref)
	}
}

// isWatched reports whether the watch of the upstreams shows an object like this.
func (r *reconciliation) isWatched(obj *unstructured.Unstructured) bool {
	return r.Selector.Matches(labelsOf(obj)) && r.Pipeline.Match(obj).IsMet()
}

// readFailed is for a failed read of the upstream.
func (r *Reconciler) readFailed(ref operator.Ref, err error) time.Duration {
	f := apply.Classify(err)
	counters.Failure(r.Name, "", f.Reason)
	events.LogAt(r.Log, f)("reading the upstream failed, will retry", "upstream", ref.String(), "reason",
		f.Reason, "message", f.Message)
	return r.memory.Missed(ref).Fail(memory.SpacingOf(r.Pipeline.Config.Retry), f.RetryAfter, canonical.Sum{}, r.now())
}
