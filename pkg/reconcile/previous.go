package reconcile

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
	"github.com/corollary-dev/corollary/pkg/status"
)

// takeOverFields takes over the fields of the previous and the adopted managers before an apply, which then removes those that
// are no longer desired. It returns the outcome with the current object – we keep an initial field that only such a manager
// owned – and the object itself, or nil if there was nothing to take over. If the object is gone or another one has its name,
// the apply fails accordingly.
func (r *reconciliation) takeOverFields(ctx context.Context, o operator.Outcome) (operator.Outcome, *unstructured.Unstructured, error) {
	if o.Live == nil || !o.Live.NeedsTakeover {
		return o, nil, nil
	}
	t, view := r.target(o.Downstream, o.Target), &r.Pipeline.Downstreams[o.Downstream].View
	obj, err := r.client.Get(ctx, t)
	if err == nil && obj.GetUID() != o.UID {
		return o, nil, nil
	}
	if err == nil {
		obj, err = r.client.TakeOver(ctx, t, obj, view.TakeoverManagers())
	}
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		return o, nil, nil
	case err != nil:
		return o, nil, err
	}
	o.Live, err = view.Live(obj)
	return o, obj, err
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
func (r *reconciliation) replaceMarks(ctx context.Context, o operator.Outcome, in operator.Input) error {
	i := o.Downstream
	t, view := r.target(i, o.Target), &r.Pipeline.Downstreams[i].View
	doc, err := r.document(in.Desired, o.Object, o.Live)
	if err != nil {
		return err
	}
	obj, err := r.client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || err == nil && obj.GetUID() != o.UID {
		r.record.NoteGone(o.UID, r.now)
		return nil
	}
	if err != nil {
		return err
	}
	if obj, err = r.client.TakeOver(ctx, t, obj, view.TakeoverManagers()); err != nil {
		return err
	}
	marked, off := marks.WithCurrentMarks(r.Pipeline.Settings, doc, i, r.upstream.GetUID(), obj, o.Live.Hash)
	resp, err := r.client.ApplyAt(ctx, t, o.UID, obj.GetResourceVersion(), marked)
	if err != nil {
		return err
	}
	if resp, err = r.client.Unmark(ctx, t, resp, apply.Marks(off)); err != nil { // marks that another manager owns too
		return err
	}
	r.record.Object(o.Object).SetUID(resp.GetUID(), o.Target)
	r.countWrite(o.Object, in.Desired.Objects[o.Object].Hash)
	r.eventUpdated(o, nil)
	return r.rememberResponse(o.Object, resp)
}

// markOwner puts the owner annotation of an object in the place of its owner reference.
func (r *reconciliation) markOwner(ctx context.Context, o operator.Outcome) error {
	t := r.target(o.Downstream, operator.RefOf(o.Live))
	obj, err := r.client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || err == nil && obj.GetUID() != o.UID {
		r.record.NoteGone(o.UID, r.now)
		return nil
	}
	if err != nil {
		return err
	}
	marked, off := marks.WithOwnerAnnotation(r.Pipeline.Settings, r.upstream, o.Downstream, obj, o.Live.Hash)
	resp, err := r.client.ApplyAt(ctx, t, o.UID, obj.GetResourceVersion(), marked)
	if err != nil {
		return err
	}
	if resp, err = r.client.Unmark(ctx, t, resp, apply.Marks{OwnerUID: off.OwnerUID}); err != nil { // another manager owns it too
		return err
	}
	if r.record.Object(o.Object).UID == o.UID { // else it is at no target
		r.countWrite(o.Object, o.Live.Hash)
	} else {
		r.removals.Write(memory.At(o.Downstream, operator.RefOf(o.Live)), r.spacing(), r.now)
	}
	live, err := r.liveOf(r.Pipeline.Downstreams[o.Downstream], resp)
	if err == nil {
		r.record.RememberUnplaced(o.Downstream, live, r.now)
	}
	return err
}

// withdrawStatus removes what the previous field manager has in the upstream's status, after ours was written: otherwise its
// conditions would stay forever. With mode Observe the previous manager may still be at work, and its status stays.
func (r *reconciliation) withdrawStatus(ctx context.Context, t apply.Target, written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	previous := marks.PreviousManager(r.Pipeline.Settings)
	if previous == "" || r.Pipeline.Observing() {
		return written, nil
	}
	out, err := r.client.WithdrawStatus(ctx, t, written, r.Pipeline.Upstream.HasStatus, previous)
	r.record.Steps.IsWithdrawn = err == nil
	return out, err
}

// previousInStatus reports whether the watch has shown that the previous field manager applied to the status and this was not
// withdrawn yet: ours has not written the status, or a process died before it withdrew the previous one.
func (r *reconciliation) previousInStatus() bool {
	previous := marks.PreviousManager(r.Pipeline.Settings)
	return previous != "" && r.Cache.HasApplied(r.ref, previous) && !r.record.Steps.IsWithdrawn && !r.Pipeline.Observing() &&
		r.Pipeline.Storable.Conditions == status.ConditionsKeyed
}

// swapFinalizer replaces the previous finalizer by the current one.
func (r *reconciliation) swapFinalizer(ctx context.Context) bool {
	up, err := r.client.SwapFinalizer(ctx, r.UpstreamTarget(r.ref), r.upstream, marks.PreviousFinalizer(r.Pipeline.Settings), r.Pipeline.Config.Conventions.Finalizer)
	if err != nil {
		r.failUpstream("renaming the finalizer", err)
		return false
	}
	r.wroteFinalizer(up)
	return true
}
