package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Current is the desired state and the live objects of an upstream, without a request to the API server.
type Current struct {
	Ref operator.Ref
	// Upstream is without its managedFields.
	Upstream *unstructured.Unstructured
	Selected bool
	Desired  *operator.Desired
	// Documents are what would be applied for each object of Desired; nil for one that is not wanted or has an error.
	Documents []map[string]any
	// Owned are the objects with the upstream's owner mark, by downstream.
	Owned [][]*drift.Live
}

// Current returns the desired state of an upstream and its objects in the caches; nil if there is nothing to report.
func (r *Reconciler) Current(ctx context.Context, ref operator.Ref) (*Current, error) {
	l, err := r.begin(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s %s: %w", r.Pipeline.Upstream.GVK.Kind, ref, err)
	}
	if l == nil {
		return nil, nil
	}
	defer r.memory.Forget(ref)
	st := &Current{Ref: ref, Upstream: l.Upstream, Selected: l.Selected, Desired: l.Memory.Desired(),
		Owned:     l.OwnedByDownstream(),
		Documents: make([]map[string]any, len(l.Memory.Desired().Objects))}
	if st.Desired == nil || !st.Selected || l.Upstream.GetDeletionTimestamp() != nil {
		return st, nil
	}
	for k, o := range st.Desired.Objects {
		if !o.Wanted || o.Err != nil {
			continue
		}
		if st.Documents[k], err = l.DocumentOf(st.Desired, k, nil); err != nil {
			return nil, fmt.Errorf("inspecting %s %s: %w", r.Pipeline.Upstream.GVK.Kind, ref, err)
		}
	}
	return st, nil
}
