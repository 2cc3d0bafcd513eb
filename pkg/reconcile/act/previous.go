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
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
)

// takeOverFields takes over the fields of the previous and the adopted managers before an apply, which then removes
// those that are no longer desired. It returns the object, of which the outcome's Live then is – we keep an initial
// field that only such a manager owned – or nil if there was nothing to take over. If the object is gone or another one
// has its name, the apply fails accordingly.
func (x *action) takeOverFields(ctx context.Context) (*unstructured.Unstructured, error) {
	if x.Live == nil || !x.Live.NeedsTakeover {
		return nil, nil
	}
	obj, err := x.read(ctx, x.target, x.UID)
	if err == nil {
		obj, err = x.Client.TakeOver(ctx, x.target, obj, x.d.View.TakeoverManagers())
	}
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		return nil, nil
	case err != nil:
		return nil, err
	}
	x.Live = x.d.View.Live(obj)
	return obj, nil
}

// mayBeAdopted asks by dry runs whether an object of others can be adopted: else its managers would lose their fields
// to an apply that is refused.
func (x *action) mayBeAdopted(ctx context.Context) error {
	if !x.Theirs || x.Live == nil || !x.Live.NeedsTakeover || x.Client.Dry() {
		return nil
	}
	asking := *x.Actor
	asking.Client = x.Client.DryRun()
	if err := asking.begin(x.Outcome).update(ctx); !apply.DryRunUnsupported(err) {
		return err
	}
	return nil
}

// extras lists what an apply left on an object and must be removed: keys that others added to exclusive fields, and
// previous marks that another manager owns too. created: the apply created the object. In an existing object without
// other managers, an empty map of ours looks as if we owned all its keys.
func extras(
	s *operator.Settings, i int, live *drift.Live, resp *unstructured.Unstructured, doc map[string]any, created bool,
) []fieldpath.Path {
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
func (x *action) replaceMarks(ctx context.Context) error {
	doc, err := x.Document(x.Object, x.Live)
	if err != nil {
		return err
	}
	obj, err := x.read(ctx, x.target, x.UID)
	if err != nil {
		return x.unlessGone(err)
	}
	if obj, err = x.Client.TakeOver(ctx, x.target, obj, x.d.View.TakeoverManagers()); err != nil {
		return err
	}
	marked, off := marks.WithCurrentMarks(x.Settings, doc, x.Downstream, x.Upstream.GetUID(), obj, x.Live.Hash)
	if err = x.mark(ctx, obj, marked, apply.Marks(off), x.want.Hash); err == nil {
		x.Did = events.EventUpdated
	}
	return err
}

// markOwner puts the owner annotation of an object in the place of its owner reference.
func (x *action) markOwner(ctx context.Context) error {
	x.Target = operator.RefOf(x.Live) // what is desired may not be known
	x.target = Target(x.Settings, x.Downstream, x.Target)
	obj, err := x.read(ctx, x.target, x.UID)
	if err != nil {
		return x.unlessGone(err)
	}
	marked, off := marks.WithOwnerAnnotation(x.Settings, x.Upstream, x.Downstream, obj, x.Live.Hash)
	return x.mark(ctx, obj, marked, apply.Marks{OwnerUID: off.OwnerUID}, x.Live.Hash)
}

// mark applies an object with other marks, and takes those off that another manager owns too.
func (x *action) mark(
	ctx context.Context, obj *unstructured.Unstructured, marked map[string]any, off apply.Marks, hash string,
) error {
	resp, err := x.Client.ApplyAt(ctx, x.target, x.UID, obj.GetResourceVersion(), marked)
	if err == nil {
		resp, err = x.Client.Unmark(ctx, x.target, resp, off)
	}
	if err == nil {
		x.Stored, x.Answer, x.Written = resp, x.LiveOf(x.d, resp), hash
		x.noteHidden(resp)
	}
	return err
}
