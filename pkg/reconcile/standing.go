package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Standing is what an upstream asks for and what it has, without a question to the API server.
type Standing struct {
	Ref pipeline.Ref
	// Upstream is without its managedFields.
	Upstream *unstructured.Unstructured
	Selected bool
	Wish     *pipeline.Wish
	// Documents are what would be applied for each downstream of the config; nil for one that is not wanted or cannot be told.
	Documents []map[string]any
	// Owned are the objects that bear the upstream's mark, by downstream.
	Owned [][]*drift.Live
}

// Standing tells of one upstream what it asks for and what the caches have of it; nil where there is nothing to tell.
func (s *Reconciler) Standing(ctx context.Context, ref pipeline.Ref) (*Standing, error) {
	l, err := s.begin(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("looking at %s %s: %w", s.Pipeline.Upstream.GVK.Kind, ref, err)
	}
	if l == nil {
		return nil, nil
	}
	defer s.memory.forget(ref)
	st := &Standing{Ref: ref, Upstream: l.upstream, Selected: l.selected, Wish: l.record.wish, Owned: l.ownedByDownstream(),
		Documents: make([]map[string]any, len(s.Pipeline.Downstreams))}
	if st.Wish == nil || !st.Selected || l.upstream.GetDeletionTimestamp() != nil {
		return st, nil
	}
	for i, w := range st.Wish.Downstreams {
		if !w.Wanted || w.Err != nil {
			continue
		}
		if st.Documents[i], err = l.document(st.Wish, i, nil); err != nil {
			return nil, fmt.Errorf("looking at %s %s: %w", s.Pipeline.Upstream.GVK.Kind, ref, err)
		}
	}
	return st, nil
}
