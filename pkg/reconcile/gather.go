package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
)

// gather gathers what the decision depends on. It sends no request, but for upstreams that the watch may hide: see findOthers.
func (r *reconciliation) gather(ctx context.Context) operator.Input {
	r.updateDesired(ctx) // our own write to the upstream may have brought somebody else's change with it
	r.TrustedUntil = time.Time{}
	r.TrustTerminating()
	r.Memory.ConfirmCreated(func(m memory.Place) bool { return r.Cache.Live(m.Downstream, m.At) != nil })
	in := operator.Input{Upstream: r.Upstream, Desired: r.Memory.Desired(), Health: r.Pipeline.Health(r.Upstream, r.Memory.Desired(), r.InputsRead), Selected: r.Selected, HasFinalizer: r.HasFinalizer(), HasPreviousFinalizer: marks.HasPreviousFinalizer(r.Pipeline.Settings, r.Upstream),
		FinalizerSpaced: r.FinalizerSpaced(), Now: r.Began, Unread: r.Unread}
	recorded := r.Recorded()
	if !r.Selected {
		in.SelectionErr = r.Pipeline.Match(r.Upstream).Err
		in.Leftovers = r.WithUnseen(r.FindLeftovers(nil, r.OwnedByDownstream()))
		in.Others = r.FindOthers(ctx, in.Leftovers)
		return in
	}
	in.Facts = make([]operator.Facts, len(in.Desired.Objects))
	for k := range in.Desired.Objects {
		in.Facts[k] = r.Facts(k, recorded)
	}
	in.Leftovers = r.WithUnseen(r.FindLeftovers(r.Memory.Desired(), r.OwnedByDownstream()))
	in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own operator.Owned) bool {
		return slices.ContainsFunc(in.Facts, func(f operator.Facts) bool { return f.Live != nil && f.Live.UID == own.Live.UID })
	})
	in.Others, in.Unrecorded = r.FindOthers(ctx, in.Leftovers), r.Unrecorded()
	return in
}

func labelsOf(u *unstructured.Unstructured) labels.Set { return u.GetLabels() }

// UpstreamTarget is the target of requests for an upstream.
func (r *Reconciler) UpstreamTarget(ref operator.Ref) apply.Target {
	return read.UpstreamTarget(r.Pipeline.Settings, ref)
}

// ReadUpstream reads an upstream from the API server. It returns apply.ErrGone if there is none, also for a name that none can have: the marks
// of an object may name anything, and the API server's answer to such a name is not that it does not exist.
func (r *Reconciler) ReadUpstream(ctx context.Context, ref operator.Ref) (*unstructured.Unstructured, error) {
	if !read.CanExist(r.Pipeline.Settings, ref) {
		return nil, apply.ErrGone
	}
	return r.Client.Get(ctx, r.UpstreamTarget(ref))
}
