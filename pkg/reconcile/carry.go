package reconcile

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// takeOver makes the fields that former managers set ours, ahead of an apply: it then removes what is no longer wanted
// of them. It returns the outcome with the object as it is after that – an initial field that only a former manager owned
// is ours to keep now – and the object itself; nil where there was nothing to take over. Where the object has gone or
// another has its name, the apply finds that out.
func (l *reconciliation) takeOver(ctx context.Context, o pipeline.Outcome) (pipeline.Outcome, *unstructured.Unstructured, error) {
	if o.Live == nil || !o.Live.Former {
		return o, nil, nil
	}
	t, view := l.target(o.Downstream, o.Target), &l.Pipeline.Downstreams[o.Downstream].View
	obj, err := l.client.Get(ctx, t)
	if err == nil && obj.GetUID() != o.UID {
		return o, nil, nil
	}
	if err == nil {
		obj, err = l.client.TakeOver(ctx, t, obj, view.Former())
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

// extras lists what an apply left on an object that must not be there: keys that others added to exclusive fields, and marks
// under previous names that somebody else owns too. made: the apply made the object. In one that existed an empty map of ours
// looks like one that is ours with all that is in it, where managedFields name nobody else.
func (l *reconciliation) extras(i int, live *drift.Live, resp *unstructured.Unstructured, doc map[string]any, made bool) []fieldpath.Path {
	var list []fieldpath.Path
	if live.Extra || !made {
		list = drift.Extras(resp, doc, l.Pipeline.Downstreams[i].View.Exclusive)
	}
	if live.Outdated {
		before := l.Pipeline.FormerMarks(i)
		list = append(list, present("labels", before.Labels, resp.GetLabels())...)
		list = append(list, present("annotations", before.Annotations, resp.GetAnnotations())...)
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

// remark gives an object that is made once only the marks of now.
func (l *reconciliation) remark(ctx context.Context, o pipeline.Outcome, in pipeline.Input) error {
	i := o.Downstream
	t, view := l.target(i, o.Target), &l.Pipeline.Downstreams[i].View
	doc, err := l.document(in.Desired, i, o.Live)
	if err != nil {
		return err
	}
	obj, err := l.client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || err == nil && obj.GetUID() != o.UID {
		l.record.forgetObject(o.UID, l.now)
		return nil
	}
	if err != nil {
		return err
	}
	if obj, err = l.client.TakeOver(ctx, t, obj, view.Former()); err != nil {
		return err
	}
	marked, off := l.Pipeline.Remarked(doc, i, l.upstream.GetUID(), obj, o.Live.Hash)
	resp, err := l.client.ApplyAt(ctx, t, o.UID, obj.GetResourceVersion(), marked)
	if err != nil {
		return err
	}
	if resp, err = l.client.Unmark(ctx, t, resp, apply.Marks(off)); err != nil { // what somebody else owns too
		return err
	}
	l.record.targets[i].knows(resp.GetUID(), o.Target)
	l.wrote(i, in.Desired.Downstreams[i].Hash)
	l.eventUpdated(o)
	return l.rememberResponse(i, resp)
}

// withdrawStatus takes what the manager of before has in the upstream's status off it, once ours has been written: else a
// condition that is over would stay for ever. It is looked for where the status is written anyway. Where mode is Observe
// that manager may be at work still, and what it says stays.
func (l *reconciliation) withdrawStatus(ctx context.Context, t apply.Target, written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := l.Pipeline.FormerManager()
	if before == "" || l.Pipeline.Observing() {
		return written, nil
	}
	out, err := l.client.WithdrawStatus(ctx, t, written, l.Pipeline.Upstream.HasStatus, before)
	l.record.withdrawn = err == nil
	return out, err
}

// previousInStatus tells whether the previous field manager has applied to the status, as far as the watch has shown. Nothing of
// the status need have changed since: the new manager has not written it yet, or a process died before it withdrew it.
func (l *reconciliation) previousInStatus() bool {
	before := l.Pipeline.FormerManager()
	return before != "" && l.Cache.HasApplied(l.ref, before) && !l.record.withdrawn && !l.Pipeline.Observing() &&
		l.Pipeline.Storable.Conditions == status.ConditionsKeyed
}

func (l *reconciliation) hasFormerFinalizer() bool {
	f := l.Pipeline.FormerFinalizer()
	return f != "" && slices.Contains(l.upstream.GetFinalizers(), f)
}

// swapFinalizer puts the finalizer of now in the place of the one of before.
func (l *reconciliation) swapFinalizer(ctx context.Context) bool {
	up, err := l.client.SwapFinalizer(ctx, l.UpstreamTarget(l.ref), l.upstream, l.Pipeline.FormerFinalizer(), l.Pipeline.Config.Conventions.Finalizer)
	if err != nil {
		l.failUpstream("renaming the finalizer", err)
		return false
	}
	l.wroteFinalizer()
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	return true
}
