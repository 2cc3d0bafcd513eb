package act

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
)

// readGenerated reads the live values that an apply sends, or a new key takes over, since they are not kept in memory. The outcome's Live is then of
// that reading. obj is one that was read before; nil if none was. ErrGone: there is no such object any more.
func (a *Actor) readGenerated(ctx context.Context, o operator.Outcome, obj *unstructured.Unstructured) (operator.Outcome, *unstructured.Unstructured, error) {
	d := a.Settings.Downstreams[o.Downstream]
	if o.Live == nil || !generated.Sends(d, o.Live) && !d.View.LacksGenerated(o.Live) {
		return o, obj, nil
	}
	if obj == nil {
		var err error
		if obj, err = a.Client.Get(ctx, a.target(o.Downstream, o.Target)); err != nil {
			return o, nil, err
		}
		if obj.GetUID() != o.UID {
			return o, nil, apply.ErrGone
		}
	}
	o.Live = d.View.Live(obj)
	return o, obj, nil
}

// KeepGenerated keeps the generated values of an object that is being deleted, or about to be, for the one that will have its name. They
// are lost if the process ends before that, unless the object can still be read then.
func (a *Actor) KeepGenerated(ctx context.Context, o operator.Outcome) error {
	t := a.Memory.Object(o.Object)
	if kept := t.Unusual.Get(); o.Live.Deleting && kept.GeneratedOf == o.UID && generated.HasAll(a.Settings.Downstreams[o.Downstream], kept.Generated) {
		return nil
	}
	values, err := a.readValues(ctx, o, o.Live)
	if errors.Is(err, apply.ErrGone) {
		return nil
	}
	if err == nil {
		u := t.Unusual.Edit()
		u.Generated, u.GeneratedOf = values, o.UID
	}
	return err
}

// readValues reads the generated values that an object has for the one that an outcome is about. ErrGone: there is no such object any more.
func (a *Actor) readValues(ctx context.Context, o operator.Outcome, live *drift.Live) (map[string]string, error) {
	obj, err := a.Client.Get(ctx, a.target(o.Downstream, operator.Ref{Namespace: live.Namespace, Name: live.Name}))
	switch {
	case err != nil:
		return nil, err
	case obj.GetUID() != live.UID:
		return nil, apply.ErrGone
	}
	return generated.Of(a.Settings.Downstreams[o.Downstream], &a.In.Desired.Objects[o.Object], obj), nil
}

// generatedTexts returns what makes the texts of generated values for an object that lacks some: those of the object that was deleted in
// its place, else of the objects that it replaces, else random ones. obj is the object as it was read; nil for a new one. An error creates
// nothing: the values may exist.
func (a *Actor) generatedTexts(ctx context.Context, o operator.Outcome, obj *unstructured.Unstructured) (func(operator.GeneratedField) string, error) {
	values := map[string]string{}
	maps.Copy(values, a.Memory.Object(o.Object).Unusual.Get().Generated)
	if obj != nil {
		maps.Copy(values, generated.Of(a.Settings.Downstreams[o.Downstream], &a.In.Desired.Objects[o.Object], obj))
	}
	for _, live := range o.ValuesFrom {
		of, err := a.readValues(ctx, o, live)
		if errors.Is(err, apply.ErrGone) {
			a.Memory.NoteGone(live.UID, a.Now)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the generated values of %s/%s: %w", live.Namespace, live.Name, err)
		}
		for key, text := range of {
			if _, ok := values[key]; !ok {
				values[key] = text
			}
		}
	}
	return func(g operator.GeneratedField) string {
		if text, ok := values[g.Key]; ok {
			return text
		}
		return generated.Random(g)
	}, nil
}

// dryRunDocument is the document of an apply by dry run.
func (a *Actor) dryRunDocument(ctx context.Context, o operator.Outcome) (map[string]any, error) {
	o, held, err := a.readGenerated(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	doc, err := a.Document(o.Object, o.Live)
	if err != nil {
		return nil, err
	}
	return generated.Fill(a.Settings.Downstreams[o.Downstream], doc, o.Live, held, generated.Random), nil
}
