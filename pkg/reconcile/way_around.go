package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// wayAround is how an object can get a document that the API server refused: without values of the live object that nobody owns, as a default
// that only goes with what was there before, or without what others have in maps that the document does not have any more, as the caBundle of a
// webhook.
type wayAround struct {
	live *unstructured.Unstructured
	// derived are the values to remove, and abandoned the fields of others.
	derived   []drift.Unlike
	abandoned []fieldpath.Path
	// after is what the object would be.
	after *unstructured.Unstructured
}

// wayAround asks by dry runs whether the API server would accept a refused document if the object had no derived values that a new one would
// not have, or else nothing of others in maps that are gone. It returns nil if not: then the change itself is refused.
func (r *reconciliation) wayAround(ctx context.Context, o operator.Outcome, doc map[string]any, refusal error) (*wayAround, error) {
	if len(apply.InvalidFields(refusal)) == 0 {
		return nil, nil
	}
	t, view := r.target(o.Downstream, o.Target), &r.Pipeline.Downstreams[o.Downstream].View
	n, err := r.newObject(ctx, o, doc)
	if err != nil {
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
	if n.created != nil {
		if _, err = r.client.WouldStore(ctx, t, w.after); !apply.Classify(err).Persistent() {
			return w, err
		}
	}
	return r.withoutAbandoned(ctx, t, doc, w, drift.Owned(live, view.Manager))
}

// withoutAbandoned is the way around w without what others have in maps that are gone, but no more of it than has to go; owned is what we
// applied last.
func (r *reconciliation) withoutAbandoned(ctx context.Context, t apply.Target, doc map[string]any, w *wayAround, owned map[string]any) (*wayAround, error) {
	w.abandoned = drift.Abandoned(owned, doc, w.after.Object)
	if len(w.abandoned) == 0 {
		return nil, nil
	}
	before := w.after
	try := func(paths []fieldpath.Path) (after *unstructured.Unstructured, err error) {
		after = before.DeepCopy()
		for _, p := range paths {
			removeField(after.Object, p, doc)
		}
		_, err = r.client.WouldStore(ctx, t, after)
		return after, err
	}
	after, err := try(w.abandoned)
	if apply.Classify(err).Persistent() {
		return nil, nil
	}
	w.after = after
	for i := 0; err == nil && len(w.abandoned) > 1 && i < min(len(w.abandoned), maxTried); {
		rest := slices.Delete(slices.Clone(w.abandoned), i, i+1)
		if after, err := try(rest); err == nil {
			w.abandoned, w.after = rest, after
			continue
		}
		i++
	}
	return w, err
}

// applyAround applies a document that the API server has refused at first.
func (r *reconciliation) applyAround(ctx context.Context, o operator.Outcome, in operator.Input, doc map[string]any, w *wayAround) error {
	t, view := r.target(o.Downstream, o.Target), &r.Pipeline.Downstreams[o.Downstream].View
	if r.client.Dry() {
		resp, err := r.client.Stored(ctx, t, w.after)
		if err != nil {
			return err
		}
		return r.rememberApplied(ctx, o, in, resp, doc)
	}
	live, err := r.dropAbandoned(ctx, o, t, w)
	if err != nil {
		return err
	}
	if claim, ok := drift.Claim(drift.Owned(live, view.Manager), w.derived); ok {
		if _, err := r.client.ApplyAt(ctx, t, o.UID, live.GetResourceVersion(), claim); err != nil {
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

// dropAbandoned removes the fields of others that forbid the change, and returns the object without them. For one that has a default, this would
// only change the value: then the default is claimed, which takes the field from others.
func (r *reconciliation) dropAbandoned(ctx context.Context, o operator.Outcome, t apply.Target, w *wayAround) (*unstructured.Unstructured, error) {
	if len(w.abandoned) == 0 {
		return w.live, nil
	}
	r.Log.Info("removing fields of others, with which the API server refuses the change", "upstream", r.ref.String(), "target", o.Target.String(),
		"fields", w.abandoned)
	version := w.live.GetResourceVersion()
	would, err := r.client.DryRunNull(ctx, t, o.UID, version, w.abandoned)
	if err != nil {
		return nil, err
	}
	w.derived = append(w.derived, drift.LivingAt(w.abandoned, would)...)
	paths := slices.DeleteFunc(slices.Clone(w.abandoned), func(p fieldpath.Path) bool { _, ok := fieldpath.Get(would.Object, p); return ok })
	if len(paths) == 0 {
		return w.live, nil
	}
	return r.client.Null(ctx, t, o.UID, version, paths)
}
