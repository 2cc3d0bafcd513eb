package reconcile

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

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
	l.Selected = r.selectsNamespace(r.Cache, ref.Namespace)
	r.Deselected.Forget(ref)
	if ahead != nil && ahead.GetUID() == cached.GetUID() &&
		memory.Newer(ahead.GetResourceVersion(), cached.GetResourceVersion()) {
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

// beginUncached is about an upstream that is not in the cache. If the config selects by labels or match conditions, it
// may exist without meeting them: only reading it shows that, and then its downstreams are unwanted. If it meets them
// (again), it is on its way into the cache. Marks can name any namespace; upstreams in one that is not watched are
// someone else's.
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
	case match.Err != nil && up.GetDeletionTimestamp() == nil:
		// nobody knows whether it is an upstream: it is left as it is
		r.NoteUnknown(ref, match.Err)
		l := r.newReconciliation(ref, up)
		l.UpdateDesired(ctx)
		l.unknown = true
		return l, nil
	case match.IsMet() && r.Selector.Matches(labelsOf(up)):
		r.Deselected.Forget(ref)
		r.forget(ref)
		return nil, nil
	}
	marks.RemoveOthersStatus(r.Pipeline.Settings, up)
	return r.newReconciliation(ref, up).beginDeselected(ctx), nil
}

// beginDeselected is about an upstream that exists and is not selected.
func (r *reconciliation) beginDeselected(ctx context.Context) *reconciliation {
	if r.hasNothing() {
		r.Deselected.Forget(r.Ref)
	}
	if r.hasNothing() || r.isLeftOver() && !r.ReportsLeftovers || isOwnDownstream(r.Pipeline, r.Upstream) {
		r.noteShared()
		if !isOwnDownstream(r.Pipeline, r.Upstream) {
			r.reportLeftover(ctx)
		}
		r.forget(r.Ref)
		return nil
	}
	r.UpdateDesired(ctx) // a deletion may read the inputs, with deletion.before
	return r
}

// selectsNamespace reports whether upstreams in a namespace are selected.
func (s *Selection) selectsNamespace(cache observe.Cache, namespace string) bool {
	if s.NamespaceSelector == nil || namespace == "" {
		return true
	}
	set, ok := cache.NamespaceLabels(namespace)
	return ok && s.NamespaceSelector.Matches(set)
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

// hasOurLabels reports whether an object has the constant labels of a downstream: one of these two marks may be
// stripped for a moment.
func hasOurLabels(s *operator.Settings, up *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.Downstreams, func(d *operator.Downstream) bool {
		return len(d.Selector) > 0 && d.Selector.AsSelector().Matches(labelsOf(up))
	})
}

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}

// reasonMatchConditionFailed: a match condition could not be evaluated.
const reasonMatchConditionFailed = "MatchConditionFailed"

// NoteUnknown reports that a match condition of an upstream could not be evaluated: nothing is done about it.
func (r *Reconciler) NoteUnknown(ref operator.Ref, err error) {
	counters.Failure(r.Name, "", reasonMatchConditionFailed)
	logging.Warn(r.Log, "whether it is an upstream is not known: it is left as it is", "upstream", ref.String(),
		"reason", reasonMatchConditionFailed,
		"message", err.Error())
	r.Deselected.Forget(ref)
	r.forget(ref)
}

// handleReconcileRequest starts over if someone requests a reconcile of the upstream by a new value of the annotation
// in conventions.reconcile. Any changed annotation has the upstream rendered and reconciled.
func (r *reconciliation) handleReconcileRequest() {
	if convention := r.Pipeline.Config.Conventions.Reconcile; convention != nil {
		r.Memory.Request(r.Upstream.GetAnnotations()[convention.Annotation])
	}
}
