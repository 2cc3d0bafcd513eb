package act

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// takeOverFields takes over the fields of the previous and the adopted managers before an apply, which then removes those that
// are no longer desired. It returns the outcome with the current object – we keep an initial field that only such a manager
// owned – and the object itself, or nil if there was nothing to take over. If the object is gone or another one has its name,
// the apply fails accordingly.
func (a *Actor) takeOverFields(ctx context.Context, o operator.Outcome) (operator.Outcome, *unstructured.Unstructured, error) {
	if o.Live == nil || !o.Live.NeedsTakeover {
		return o, nil, nil
	}
	t, view := a.target(o.Downstream, o.Target), &a.Settings.Downstreams[o.Downstream].View
	obj, err := a.Client.Get(ctx, t)
	if err == nil && obj.GetUID() != o.UID {
		return o, nil, nil
	}
	if err == nil {
		obj, err = a.Client.TakeOver(ctx, t, obj, view.TakeoverManagers())
	}
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		return o, nil, nil
	case err != nil:
		return o, nil, err
	}
	o.Live = view.Live(obj)
	return o, obj, nil
}

// extras lists what an apply left on an object and must be removed: keys that others added to exclusive fields, and previous
// marks that another manager owns too. created: the apply created the object. In an existing object without other managers, an
// empty map of ours looks as if we owned all its keys.
func extras(s *operator.Settings, i int, live *drift.Live, resp *unstructured.Unstructured, doc map[string]any, created bool) []fieldpath.Path {
	var list []fieldpath.Path
	if live.Extra || !created {
		list = drift.Extras(resp, doc, s.Downstreams[i].View.Exclusive)
	}
	if live.HasPreviousNames {
		previous := marks.PreviousMarks(s, i)
		list = append(list, present("labels", previous.Labels, resp.GetLabels())...)
		list = append(list, present("annotations", previous.Annotations, resp.GetAnnotations())...)
	}
	return list
}

func present(field string, keys []string, have map[string]string) []fieldpath.Path {
	var list []fieldpath.Path
	for _, key := range keys {
		if _, ok := have[key]; ok {
			list = append(list, fieldpath.New("metadata", field, key))
		}
	}
	return list
}

// replaceMarks gives an object with updatePolicy CreateOnly the current marks.
func (a *Actor) replaceMarks(ctx context.Context, o operator.Outcome) error {
	i := o.Downstream
	t, view := a.target(i, o.Target), &a.Settings.Downstreams[i].View
	doc, err := a.Document(o.Object, o.Live)
	if err != nil {
		return err
	}
	obj, err := a.Client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || err == nil && obj.GetUID() != o.UID {
		a.Memory.NoteGone(o.UID, a.Now)
		return nil
	}
	if err != nil {
		return err
	}
	if obj, err = a.Client.TakeOver(ctx, t, obj, view.TakeoverManagers()); err != nil {
		return err
	}
	marked, off := marks.WithCurrentMarks(a.Settings, doc, i, a.Upstream.GetUID(), obj, o.Live.Hash)
	resp, err := a.Client.ApplyAt(ctx, t, o.UID, obj.GetResourceVersion(), marked)
	if err != nil {
		return err
	}
	if resp, err = a.Client.Unmark(ctx, t, resp, apply.Marks(off)); err != nil { // marks that another manager owns too
		return err
	}
	a.Memory.Object(o.Object).SetUID(resp.GetUID(), o.Target)
	a.countWrite(o.Object, a.In.Desired.Objects[o.Object].Hash)
	a.Updated(o, nil)
	a.rememberResponse(o.Object, resp)
	return nil
}

// markOwner puts the owner annotation of an object in the place of its owner reference.
func (a *Actor) markOwner(ctx context.Context, o operator.Outcome) error {
	t := a.target(o.Downstream, operator.RefOf(o.Live))
	obj, err := a.Client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || err == nil && obj.GetUID() != o.UID {
		a.Memory.NoteGone(o.UID, a.Now)
		return nil
	}
	if err != nil {
		return err
	}
	marked, off := marks.WithOwnerAnnotation(a.Settings, a.Upstream, o.Downstream, obj, o.Live.Hash)
	resp, err := a.Client.ApplyAt(ctx, t, o.UID, obj.GetResourceVersion(), marked)
	if err != nil {
		return err
	}
	if resp, err = a.Client.Unmark(ctx, t, resp, apply.Marks{OwnerUID: off.OwnerUID}); err != nil { // another manager owns it too
		return err
	}
	if a.Memory.Object(o.Object).UID == o.UID { // else it is at no target
		a.countWrite(o.Object, o.Live.Hash)
	} else {
		a.Removals.Write(memory.At(o.Downstream, operator.RefOf(o.Live)), a.Spacing, a.Now)
	}
	a.Memory.RememberUnplaced(o.Downstream, a.LiveOf(a.Settings.Downstreams[o.Downstream], resp), a.Now)
	return nil
}
