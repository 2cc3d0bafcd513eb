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

// readGenerated reads the live values that an apply sends, or a new key takes over, since they are not kept in memory;
// live is then of that reading. obj is one that was read before; nil if none was. ErrGone: there is no such object any
// more.
func (x *action) readGenerated(
	ctx context.Context, obj *unstructured.Unstructured,
) (live *drift.Live, held *unstructured.Unstructured, err error) {
	if x.Live == nil || !generated.Sends(x.d, x.Live) && !x.d.View.LacksGenerated(x.Live) {
		return x.Live, obj, nil
	}
	if obj == nil {
		if obj, err = x.read(ctx, x.target, x.UID); err != nil {
			return nil, nil, err
		}
	}
	return x.d.View.Live(obj), obj, nil
}

// KeepGenerated is what keepGenerated does for an object that is being deleted.
func (a *Actor) KeepGenerated(ctx context.Context, o operator.Outcome) Result {
	x := a.begin(o)
	_, x.Err = x.keepGenerated(ctx)
	return *x.Result
}

// keepGenerated keeps the generated values of an object that is being deleted, or about to be, for the one that will
// have its name. They are lost if the process ends before that, unless the object can still be read then. ok is false
// if it is not being deleted and may not be: it has a finalizer that the cache does not show yet.
func (x *action) keepGenerated(ctx context.Context) (ok bool, err error) {
	if kept := x.known.Unusual.Get(); x.Live.Deleting && kept.GeneratedOf == x.UID &&
		generated.HasAll(x.d, kept.Generated) {
		return true, nil
	}
	obj, err := x.read(ctx, Target(x.Settings, x.Downstream, operator.RefOf(x.Live)), x.UID)
	switch {
	case errors.Is(err, apply.ErrGone):
		return true, nil
	case err != nil:
		return false, err
	}
	if now := x.LiveOf(x.d, obj); !x.Live.Deleting && generated.HeldBy(x.d, now) != "" {
		x.Answer = now
		return false, nil
	}
	x.Generated = generated.Of(x.d, x.want, obj)
	return true, nil
}

// readValues reads the generated values that an object has for the one that the outcome is about. ErrGone: there is no
// such object any more.
func (x *action) readValues(ctx context.Context, live *drift.Live) (map[string]string, error) {
	obj, err := x.read(ctx, Target(x.Settings, x.Downstream, operator.RefOf(live)), live.UID)
	if err != nil {
		return nil, err
	}
	return generated.Of(x.d, x.want, obj), nil
}

// document is the document to send, with generated values for those that the object lacks: those of the object that was
// deleted in its place, else of the objects that it replaces, else random ones. obj is the object as it was read; nil
// for a new one. An error creates nothing: the values may exist.
func (x *action) document(ctx context.Context, obj *unstructured.Unstructured) (map[string]any, error) {
	doc, err := x.Document(x.Object, x.Live)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	maps.Copy(values, x.known.Unusual.Get().Generated)
	if obj != nil {
		maps.Copy(values, generated.Of(x.d, x.want, obj))
	}
	for _, live := range x.ValuesFrom {
		of, err := x.readValues(ctx, live)
		if errors.Is(err, apply.ErrGone) {
			x.Gone = append(x.Gone, live.UID)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the generated values of %s/%s: %w", live.Namespace, live.Name, err)
		}
		maps.Copy(of, values)
		values = of
	}
	return generated.Fill(x.d, doc, x.Live, obj, func(g operator.GeneratedField) string {
		if text, ok := values[g.Key]; ok {
			return text
		}
		return generated.Random(g)
	}), nil
}

// dryRunDocument is the document of an apply by dry run.
func (x *action) dryRunDocument(ctx context.Context) (map[string]any, error) {
	live, held, err := x.readGenerated(ctx, nil)
	if err != nil {
		return nil, err
	}
	doc, err := x.Document(x.Object, live)
	if err != nil {
		return nil, err
	}
	return generated.Fill(x.d, doc, live, held, generated.Random), nil
}
