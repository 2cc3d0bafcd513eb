package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
)

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
