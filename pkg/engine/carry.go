package engine

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// takeOver makes the fields that former managers set ours, ahead of an apply: it then removes what is no longer wanted
// of them. It returns the outcome with the object as it is after that – an initial field that only a former manager owned
// is ours to keep now – and the object itself; nil where there was nothing to take over. Where the object has gone or
// another has its name, the apply finds that out.
func (l *look) takeOver(ctx context.Context, o pipeline.Outcome) (pipeline.Outcome, *unstructured.Unstructured, error) {
	if o.Live == nil || !o.Live.Former {
		return o, nil, nil
	}
	t, view := l.target(o.Downstream, o.Target), &l.pipeline.Downstreams[o.Downstream].View
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

// extras lists what an apply left on an object that must not be there: keys that others added to exclusive fields, and
// marks under names of before that somebody else owns too.
func (l *look) extras(i int, live *drift.Live, resp *unstructured.Unstructured, doc map[string]any) []fieldpath.Path {
	var list []fieldpath.Path
	if live.Extra {
		list = drift.Extras(resp, doc, l.pipeline.Downstreams[i].View.Exclusive)
	}
	if live.Outdated {
		before := l.pipeline.FormerMarks(i)
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

// countCarried counts an object that was carried over to the names of now: once is no fight, several times in a row is.
func (l *look) countCarried(o pipeline.Outcome, resp *unstructured.Unstructured) {
	t := &l.record.targets[o.Downstream]
	t.knows(resp.GetUID(), o.Target)
	t.repairs, t.lastRepair = l.undone(t)+1, l.now
}

// remark gives an object that is made once only the marks of now.
func (l *look) remark(ctx context.Context, o pipeline.Outcome, in pipeline.Input) error {
	i := o.Downstream
	t := l.target(i, o.Target)
	doc, err := l.document(in.Wish, i, o.Live)
	if err != nil {
		return err
	}
	obj, err := l.client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || err == nil && obj.GetUID() != o.UID {
		l.record.letGo(o.UID, l.now)
		return nil
	}
	if err != nil {
		return err
	}
	marks := l.pipeline.NewMarks(doc, i, l.upstream.GetUID(), o.Live)
	resp, err := l.client.Remark(ctx, t, obj, apply.NewMarks{Labels: marks.Labels, Annotations: marks.Annotations,
		OwnerReferences: marks.OwnerReferences, Off: apply.Marks(marks.Off)})
	if err != nil {
		return err
	}
	l.countCarried(o, resp)
	l.eventUpdated(o)
	return l.take(i, resp)
}

// withdrawStatus takes what the manager of before has in the upstream's status off it, once ours has been written: else a
// condition that is over would stay for ever. It is looked for where the status is written anyway. Where mode is Observe
// that manager may be at work still, and what it says stays.
func (l *look) withdrawStatus(ctx context.Context, t apply.Target, written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := l.pipeline.FormerManager()
	if before == "" || l.pipeline.Observing() {
		return written, nil
	}
	return l.client.WithdrawStatus(ctx, t, written, l.pipeline.Upstream.HasStatus, before)
}

func (l *look) hasFormerFinalizer() bool {
	f := l.pipeline.FormerFinalizer()
	return f != "" && slices.Contains(l.upstream.GetFinalizers(), f)
}

// swapFinalizer puts the finalizer of now in the place of the one of before.
func (l *look) swapFinalizer(ctx context.Context) bool {
	up, err := l.client.SwapFinalizer(ctx, l.upstreamTarget(l.ref), l.upstream, l.pipeline.FormerFinalizer(), l.pipeline.Config.Conventions.Finalizer)
	if err != nil {
		l.failUpstream("renaming the finalizer", err)
		return false
	}
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	return true
}
