package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
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

// Reconcile reconciles one upstream: get, finalize if it is being deleted, gather, decide, act, report. It returns after how
// long to reconcile again; zero means at the next event.
func (r *Reconciler) Reconcile(ctx context.Context, ref operator.Ref) time.Duration {
	if err := r.releaseOrphanedBefore(ctx, ref); err != nil {
		return r.readFailed(ref, err)
	}
	if after, finished := r.cleanUpLost(ctx, ref); !finished {
		return after
	}
	l, err := r.beginAny(ctx, ref)
	if err != nil {
		return r.readFailed(ref, err)
	}
	r.memory.Found(ref)
	if l == nil {
		r.Host.MayProceed(ref, guard.Counted{}, true)
		return 0
	}
	defer l.ReleaseSlot()
	if l.NoSlot {
		return attempt.NoSlotDelay()
	}
	ctx, leave, ok := l.enterShard(ctx)
	if !ok {
		r.Host.MayProceed(ref, guard.Counted{}, true)
		return 0
	}
	defer leave()
	return l.reconcile(ctx)
}

// reconcile is Reconcile for an upstream for which this process acts.
func (r *reconciliation) reconcile(ctx context.Context) time.Duration {
	defer r.StartActing(ctx)()
	if r.Upstream.GetDeletionTimestamp() != nil {
		r.Host.MayProceed(r.Ref, guard.Counted{}, true)
		return r.finalize(ctx)
	}
	switch {
	case r.unknown:
		r.Host.MayProceed(r.Ref, guard.Counted{}, true) // what guard held of it is not done
		return r.saveUnknown(ctx)
	case r.Pipeline.OnlyDeletes:
		return r.awaitDeletion(ctx)
	}
	// Objects created for an upstream that is gone, and that the watch still shows, would be garbage collected and created
	// again.
	if wait := r.Memory.GoneFor(r.Upstream.GetUID(), r.Began); wait > 0 {
		return wait
	}
	r.SkipBackingOff()
	var decision operator.Decision
	for round := range attempt.MaxRounds {
		var in operator.Input
		in, decision = r.Decide(func() operator.Input { return r.GatherAll(ctx) })
		r.Notify(func(o attempt.Observer) { o.Decided(in, decision) })
		if round == 0 && r.heldByGuard(ctx, decision) && !r.Pipeline.Paused(r.Upstream) { // which does nothing, and says so
			return r.hold(ctx)
		}
		if !decision.Pending() {
			break
		}
		if after, err := r.ensureLatest(ctx, &decision); err != nil {
			return r.readFailed(r.Ref, err)
		} else if after > 0 {
			return after
		}
		if !r.reportAndAct(ctx, &decision, in) {
			break
		}
	}
	return r.finish(ctx, decision)
}

// reportAndAct is act, after the status of an upstream that is not selected: nothing finds it again once its downstreams are gone.
func (r *reconciliation) reportAndAct(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if !r.Selected {
		r.writeUnselected(ctx, *d)
	}
	return r.CarryOut(ctx, d, in)
}

// begin returns the reconciliation of an upstream; nil if there is nothing to do, or nobody knows whether it is one.
func (r *Reconciler) begin(ctx context.Context, ref operator.Ref) (*reconciliation, error) {
	l, err := r.beginAny(ctx, ref)
	if l != nil && l.unknown {
		l.ReleaseSlot()
		r.forget(ref)
		return nil, err
	}
	return l, err
}

// beginAny is begin, also for one that is unknown.
func (r *Reconciler) beginAny(ctx context.Context, ref operator.Ref) (begun *reconciliation, err error) {
	ahead := r.memory.Peek(ref).WrittenUpstream()
	cached, err := r.Cache.Upstream(ref)
	if err != nil {
		return nil, err
	}
	if cached == nil {
		return r.beginUncached(ctx, ref)
	}
	if isOwnDownstream(r.Pipeline, cached) {
		return nil, nil
	}
	l := r.newReconciliation(ref, cached)
	defer func() {
		if begun == nil {
			l.ReleaseSlot()
		}
	}()
	l.Selected = r.namespaceSelected(ref.Namespace)
	r.deselected.Forget(ref)
	if ahead != nil && ahead.GetUID() == cached.GetUID() && memory.Newer(ahead.GetResourceVersion(), cached.GetResourceVersion()) {
		l.Upstream = ahead
	} else {
		l.Memory.IsEcho(cached.GetUID(), cached.GetResourceVersion()) // the cache has caught up
	}
	if l.UpdateDesired(ctx); l.NoSlot {
		return l, nil
	}
	l.handleReconcileRequest()
	if !l.Selected && (l.hasNothing() || l.isLeftOver() && !r.ReportsLeftovers) {
		l.noteShared()
		l.reportLeftover(ctx)
		r.forget(ref)
		return nil, nil
	}
	if l.Selected {
		r.shared.Forget(r.Name, ref.String())
		return l, nil
	}
	return withoutOthersStatus(ctx, l)
}

// hasNothing reports whether there is nothing to undo for an upstream that is not selected.
func (r *reconciliation) hasNothing() bool {
	return !r.HasFinalizer() && len(r.Owned()) == 0 && len(r.Memory.Notes.Get().Unconfirmed) == 0 && !report.SaysItIsKept(r.Pipeline.Settings, r.Upstream)
}

func (r *Reconciler) newReconciliation(ref operator.Ref, up *unstructured.Unstructured) *reconciliation {
	if rec := r.memory.Peek(ref); rec != nil && rec.UID != up.GetUID() {
		r.forget(ref) // the one before was deleted between two reconciliations
		r.cascades.Forget(rec.UID)
	}
	key := ref
	if at := (operator.Ref{Namespace: up.GetNamespace(), Name: up.GetName()}); at == ref { // it shares the memory of the cached upstream
		key = at
	}
	sources := observe.Sources{Pipeline: r.Pipeline, Cache: r.Cache, Removals: &r.memory.Removals, Cascades: &r.cascades, Readers: &r.readers}
	st := &observe.State{Sources: sources, Ref: ref, Upstream: up, Memory: r.memory.Recall(key, up.GetUID()), Began: r.time()}
	session := attempt.Session{Slots: r.Slots, Client: r.Client, Kinds: r.Kinds, Awaited: &r.awaited, Token: r.token, Observer: r.Observer}
	if r.Shards != nil {
		session.ShardOf = r.Shards.Of
	}
	l := &reconciliation{Reconciler: r, Attempt: attempt.New(session, write.Session{Operator: r.Operator, Host: r.Host, Unstorable: &r.unstorable}, st, r.isCounting())}
	l.EnsureLatest = func(ctx context.Context) (time.Duration, error) { return l.ensureLatest(ctx, &operator.Decision{}) }
	l.BeforeFinalizer = func() { r.lostUpstreams.NoteFinalizer(up.GetUID(), st.Began) }
	l.PredecessorBaseline = l.predecessorBaseline
	l.Memory.ClearInSync()
	l.Memory.RenderSlowAgain(l.Began)
	return l
}

// beginUncached is about an upstream that is not in the cache. If the config selects by labels or match conditions, it may exist without
// meeting them: only reading it tells, and then its downstreams are unwanted. If it meets them (again), it is on its way into the cache. Marks can
// name any namespace; upstreams in one that is not watched are somebody else's.
func (r *Reconciler) beginUncached(ctx context.Context, ref operator.Ref) (*reconciliation, error) {
	if r.Pipeline.HasRows() {
		return r.beginGone(ctx, ref), nil
	}
	mayExist := r.Pipeline.Config.Watch.LabelSelector != nil || r.Cache.Excludes(ref)
	switch {
	case !r.Cache.Watches(ref.Namespace):
		err := r.reportDropped(ctx, ref)
		r.forget(ref)
		return nil, err
	case !mayExist:
		r.forgetGone(ref)
		return nil, nil
	}
	up, err := r.ReadUpstream(ctx, ref)
	var match desired.MatchResult
	if err == nil {
		match = r.Pipeline.Match(up)
	}
	switch {
	case errors.Is(err, apply.ErrGone):
		r.forgetGone(ref)
		return nil, nil
	case err != nil:
		return nil, err
	case match.Err != nil && up.GetDeletionTimestamp() == nil: // nobody knows whether it is an upstream: it is left as it is
		r.NoteUnknown(ref, match.Err)
		l := r.newReconciliation(ref, up)
		l.UpdateDesired(ctx)
		l.unknown = true
		return l, nil
	case match.IsMet() && r.Selector.Matches(labelsOf(up)):
		r.deselected.Forget(ref)
		r.forget(ref)
		return nil, nil
	}
	marks.RemoveOthersStatus(r.Pipeline.Settings, up)
	return r.beginDeselected(ctx, ref, up), nil
}

// beginDeselected is about an upstream that exists and is not selected.
func (r *Reconciler) beginDeselected(ctx context.Context, ref operator.Ref, up *unstructured.Unstructured) *reconciliation {
	l := r.newReconciliation(ref, up)
	if l.hasNothing() {
		r.deselected.Forget(ref)
	}
	if l.hasNothing() || l.isLeftOver() && !r.ReportsLeftovers || isOwnDownstream(r.Pipeline, up) {
		l.noteShared()
		if !isOwnDownstream(r.Pipeline, up) {
			l.reportLeftover(ctx)
		}
		r.forget(ref)
		return nil
	}
	l.UpdateDesired(ctx) // a deletion may read the inputs, with deletion.before
	return l
}

// forgetGone is forget for an upstream that does not exist.
func (r *Reconciler) forgetGone(ref operator.Ref) {
	r.cascades.Forget(r.deselected.Forget(ref))
	r.shared.Forget(r.Name, ref.String())
	if r.Rows != nil {
		r.Rows.Forget(ref)
	}
	r.forget(ref)
}

// forget forgets what was done for an upstream. What the watch has shown of its deletion stays until the upstream is gone: the watch does
// not show it again.
func (r *Reconciler) forget(ref operator.Ref) {
	if rec := r.memory.Peek(ref); rec != nil {
		r.tally().Forget(rec)
		r.readers.Move(ref, rec.Inputs().Refs, nil)
		r.unstorable.Forget(ref)
		r.awaited.Set(ref, nil)
		r.memory.Forget(ref)
	}
}

// isWatched tells whether the watch of the upstreams shows an object like this.
func (r *Reconciler) isWatched(obj *unstructured.Unstructured) bool {
	return r.Selector.Matches(labelsOf(obj)) && r.Pipeline.Match(obj).IsMet()
}

func (r *Reconciler) namespaceSelected(namespace string) bool {
	if r.NamespaceSelector == nil || namespace == "" {
		return true
	}
	set, ok := r.Cache.NamespaceLabels(namespace)
	return ok && r.NamespaceSelector.Matches(set)
}

// isOwnDownstream reports whether an object of the watched kind was created by this operator: a copy is not copied.
func isOwnDownstream(p *compile.Pipeline, up *unstructured.Unstructured) bool {
	before := p.Before
	same := before != nil && before.Object.GVK().GroupKind() == p.Upstream.GVK.GroupKind()
	for _, d := range p.Downstreams {
		same = same || d.GVK().GroupKind() == p.Upstream.GVK.GroupKind()
	}
	if !same {
		return false
	}
	if marks.HasOwnerMark(p.Settings, up) {
		return true
	}
	if !marks.HasHash(p.Settings, up) && !hasOurLabels(p.Settings, up) {
		return false
	}
	for _, ref := range up.GetOwnerReferences() {
		if ref.Kind == p.Upstream.GVK.Kind && groupOf(ref.APIVersion) == p.Upstream.GVK.Group {
			return true
		}
	}
	return false
}

// hasOurLabels reports whether an object has the constant labels of a downstream: one of these two marks may be stripped for a
// moment.
func hasOurLabels(s *operator.Settings, up *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.Downstreams, func(d *operator.Downstream) bool {
		return len(d.Selector) > 0 && d.Selector.AsSelector().Matches(labelsOf(up))
	})
}

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}
