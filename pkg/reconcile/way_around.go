package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// wayAround is how an object can get a document that the API server refused: without values of the live object that nobody owns, as a default
// that only goes with what was there before.
type wayAround struct {
	live *unstructured.Unstructured
	// derived are the values to remove.
	derived []drift.Unlike
	// after is what the object would be.
	after *unstructured.Unstructured
}

// wayAround asks by dry runs whether the API server would accept a refused document if the object had no derived values that a new one would
// not have. It returns nil if not: then the change itself is refused.
func (r *reconciliation) wayAround(ctx context.Context, o pipeline.Outcome, doc map[string]any, refusal error) (*wayAround, error) {
	if len(apply.InvalidFields(refusal)) == 0 {
		return nil, nil
	}
	t, view := r.target(o.Downstream, o.Target), &r.Pipeline.Downstreams[o.Downstream].View
	n, err := r.newObject(ctx, o, doc)
	if err != nil || n.created == nil {
		return nil, err
	}
	live, err := r.client.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	after := patched(live, withoutCoOwned(drift.Changed(doc, live, view), view.Manager), doc)
	list, err := n.differences(ctx, after)
	if err != nil {
		return nil, err
	}
	w := &wayAround{live: live, derived: drift.LivingIn(list, live), after: drift.LikeNew(after, list)}
	if _, err = r.client.WouldStore(ctx, t, w.after); apply.Classify(err).Persistent() {
		return nil, nil
	}
	return w, err
}

// applyAround applies a document that the API server has refused at first.
func (r *reconciliation) applyAround(ctx context.Context, o pipeline.Outcome, in pipeline.Input, doc map[string]any, w *wayAround) error {
	t, view := r.target(o.Downstream, o.Target), &r.Pipeline.Downstreams[o.Downstream].View
	if r.client.Dry() {
		resp, err := r.client.Stored(ctx, t, w.after)
		if err != nil {
			return err
		}
		return r.rememberApplied(ctx, o, in, resp, doc)
	}
	if claim, ok := drift.Claim(drift.Owned(w.live, view.Manager), w.derived); ok {
		if _, err := r.client.ApplyAt(ctx, t, o.UID, w.live.GetResourceVersion(), claim); err != nil {
			return err
		}
	}
	// The API server stores null for a map that becomes empty, unless it was removed before.
	if rest, ok := drift.WithoutEmptied(doc, w.live.Object); ok {
		if _, err := r.client.Apply(ctx, t, o.UID, rest); err != nil {
			return err
		}
	}
	resp, err := r.client.Apply(ctx, t, o.UID, doc)
	if err != nil {
		return err
	}
	r.reportApplied(o, w.live, resp)
	return r.rememberApplied(ctx, o, in, resp, doc)
}
