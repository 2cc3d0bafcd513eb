package act

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// wayAround is how an object can get a document that the API server refused: without values of the live object that
// nobody owns, as a default that only goes with what was there before, or without what others have in maps that the
// document does not have any more, as the caBundle of a webhook.
type wayAround struct {
	*newObject
	live *unstructured.Unstructured
	// derived are the values to remove, and abandoned the fields of others.
	derived   []drift.Unlike
	abandoned []fieldpath.Path
	// after is what the object would be.
	after *unstructured.Unstructured
}

// wayAround asks by dry runs whether the API server would accept a refused document if the object had no derived values
// that a new one would not have, or else nothing of others in maps that are gone. It returns nil if not: then the
// change itself is refused.
func (x *action) wayAround(ctx context.Context, doc map[string]any, refusal error) (*wayAround, error) {
	if len(apply.InvalidFields(refusal)) == 0 {
		return nil, nil
	}
	n, err := x.newObjectOf(ctx, doc)
	if err != nil {
		return nil, err
	}
	live, err := x.Client.Get(ctx, x.target)
	if err != nil {
		return nil, err
	}
	after := Patched(live, withoutCoOwned(drift.Changed(doc, live, &x.d.View), x.d.View.Manager), doc)
	for _, path := range x.d.View.Initial { // never drift, but part of what is sent
		if value, ok := fieldpath.Get(doc, path); ok {
			_ = fieldpath.Set(after.Object, path, value) // one in an item that live lacks stays out
		}
	}
	list, err := n.differences(ctx, after)
	if err != nil {
		return nil, err
	}
	w := &wayAround{newObject: n, live: live, derived: drift.LivingIn(list, live), after: drift.LikeNew(after, list)}
	if n.created != nil {
		if _, err = x.Client.WouldStore(ctx, x.target, w.after); !apply.Classify(err).Persistent() {
			return w, err
		}
	}
	return w.withoutAbandoned(ctx)
}

// withoutAbandoned is the way around without what others have in maps that are gone, but no more of it than has to go.
func (w *wayAround) withoutAbandoned(ctx context.Context) (*wayAround, error) {
	w.abandoned = drift.Abandoned(drift.Owned(w.live, w.d.View.Manager), w.doc, w.after.Object)
	if len(w.abandoned) == 0 {
		return nil, nil
	}
	before := w.after
	try := func(paths []fieldpath.Path) (after *unstructured.Unstructured, err error) {
		after = before.DeepCopy()
		for _, p := range paths {
			removeField(after.Object, p, w.doc)
		}
		_, err = w.Client.WouldStore(ctx, w.target, after)
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

// applyWithout applies the document that the API server has refused at first, after what it refuses it for is gone.
func (w *wayAround) applyWithout(ctx context.Context) error {
	if w.Client.Dry() {
		resp, err := w.Client.WouldStore(ctx, w.target, w.after)
		if err != nil {
			return err
		}
		return w.applied(ctx, resp, w.doc)
	}
	live, err := w.dropAbandoned(ctx)
	if err != nil {
		return err
	}
	if claim, ok := drift.Claim(drift.Owned(live, w.d.View.Manager), w.derived); ok {
		if _, err := w.Client.ApplyAt(ctx, w.target, w.UID, live.GetResourceVersion(), claim); err != nil {
			return err
		}
	}
	// The API server stores null for a map that becomes empty, unless it was removed before.
	if rest, ok := drift.WithoutEmptied(w.doc, w.live.Object); ok {
		if _, err := w.Client.Apply(ctx, w.target, w.UID, rest); err != nil {
			return err
		}
	}
	resp, err := w.Client.Apply(ctx, w.target, w.UID, w.doc)
	if err != nil {
		return err
	}
	w.didApply(w.live, resp)
	return w.applied(ctx, resp, w.doc)
}

// dropAbandoned removes the fields of others that forbid the change, and returns the object without them. For one that
// has a default, this would only change the value: then the default is claimed, which takes the field from others.
func (w *wayAround) dropAbandoned(ctx context.Context) (*unstructured.Unstructured, error) {
	if len(w.abandoned) == 0 {
		return w.live, nil
	}
	uid, version := w.UID, w.live.GetResourceVersion()
	w.Log.Info("removing fields of others, with which the API server refuses the change", "upstream", w.Ref.String(),
		"target", w.Target.String(),
		"fields", w.abandoned)
	would, err := w.Client.DryRunNull(ctx, w.target, uid, version, w.abandoned)
	if err != nil {
		return nil, err
	}
	w.derived = append(w.derived, drift.LivingAt(w.abandoned, would)...)
	paths := slices.DeleteFunc(slices.Clone(w.abandoned), func(p fieldpath.Path) bool {
		_,
			ok := fieldpath.Get(would.Object, p)
		return ok
	})
	if len(paths) == 0 {
		return w.live, nil
	}
	return w.Client.Null(ctx, w.target, uid, version, paths)
}
