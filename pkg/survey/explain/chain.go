package explain

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// origin is an upstream that an object follows from, and the operator by which it does.
type origin struct {
	operator int
	kind     *kinds.Kind
	at       operator.Ref
}

// explain prints what the object follows from, level by level, and then what follows from it.
func (e *explanation) explain(ctx context.Context, k kinds.Kind, object *unstructured.Unstructured) error {
	chain := e.up(ctx, k, object)
	related := false
	for i := len(chain) - 1; i >= 0; i-- {
		o := chain[i]
		found, err := e.upstream(ctx, o.operator, o.at)
		if err != nil {
			return err
		}
		related = related || found
	}
	found, err := e.down(ctx, k.GVK.GroupKind(), e.object.At)
	if err != nil {
		return err
	}
	known := related || found
	met, err := e.explainUnowned(ctx, k, !known)
	if err == nil && !known && !met {
		e.remark(fmt.Sprintf("%s: not related to these configs: it has no owner mark, and no operator watches or reads it",
			e.object))
	}
	return err
}

// up lists what an object follows from, the nearest first, by the marks that it has.
func (e *explanation) up(ctx context.Context, k kinds.Kind, object *unstructured.Unstructured) []origin {
	var chain []origin
	seen := map[string]bool{}
	for object != nil {
		o, ok := e.owner(k, object)
		key := fmt.Sprint(o)
		if !ok || seen[key] {
			return chain
		}
		seen[key] = true
		if chain = append(chain, o); o.kind.GVK == desired.RowKind().GVK {
			return chain
		}
		// One that is gone, or cannot be read, ends the chain; whoever looks at it reports that.
		parent, err := apply.New(e.Client, "why").Get(ctx, apply.Target{GVR: o.kind.GVR,
			Namespace: o.at.Namespace, Name: o.at.Name})
		if err != nil {
			return chain
		}
		k, object = *o.kind, parent
	}
	return chain
}

// owner finds the operator and the upstream that an object's marks name.
func (e *explanation) owner(k kinds.Kind, object *unstructured.Unstructured) (origin, bool) {
	for n, f := range e.Files {
		if !hasDownstream(f, k) {
			continue
		}
		kind := e.kindOf(f.Watch.APIVersion, f.Watch.Kind)
		if kind == nil {
			continue
		}
		for _, ref := range object.GetOwnerReferences() {
			if is(*kind, ref.APIVersion, ref.Kind) {
				at := operator.Ref{Name: ref.Name}
				if kind.Namespaced {
					at.Namespace = object.GetNamespace()
				}
				return origin{n, kind, at}, true
			}
		}
		if key := f.Conventions.Owner.Annotation; key != "" {
			if at, _, ok := marks.ParseOwnerMark(object.GetAnnotations()[key]); ok {
				return origin{n, kind, at}, true
			}
		}
	}
	return origin{}, false
}

func hasDownstream(f *load.File, k kinds.Kind) bool {
	for _, d := range f.Downstreams {
		if is(k, d.APIVersion, d.Kind) {
			return true
		}
	}
	b := f.Deletion.Before
	return b != nil && is(k, b.APIVersion, b.Kind)
}

func (e *explanation) kindOf(apiVersion, kind string) *kinds.Kind {
	for i := range e.Kinds {
		if is(e.Kinds[i], apiVersion, kind) {
			return &e.Kinds[i]
		}
	}
	return nil
}

// is reports whether an apiVersion and kind of a config are this one. The version does not count: an object has them
// all.
func is(k kinds.Kind, apiVersion, kind string) bool {
	return k.GVK.GroupKind() == schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}

// upstream explains one upstream, as far as it is a link to the object in question. It reports whether there was
// anything to tell.
func (e *explanation) upstream(ctx context.Context, n int, at operator.Ref) (bool, error) {
	key := fmt.Sprint(n, at)
	if e.explained[key] {
		return true, nil
	}
	e.explained[key] = true
	v, err := e.Open(ctx, n, at.Namespace)
	if err != nil {
		return false, err
	}
	defer v.Close()
	finding, err := v.Preview(ctx, at)
	if err != nil {
		return false, err
	}
	if finding == nil {
		return true, e.explainUnselected(ctx, n, v, at)
	}
	e.written = v.LastWrite(ctx, at)
	e.take(ctx, v.Pipeline(), finding, true)
	return true, nil
}

// down explains what follows from an object, and what follows from that.
func (e *explanation) down(ctx context.Context, kind schema.GroupKind, at operator.Ref) (bool, error) {
	found := false
	for n, f := range e.Files {
		if schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind).GroupKind() != kind ||
			e.explained[fmt.Sprint(n, at)] {
			continue
		}
		e.explained[fmt.Sprint(n, at)] = true
		v, err := e.Open(ctx, n, at.Namespace)
		if err != nil {
			return found, err
		}
		at := namedRow(v, at)
		if at == (operator.Ref{}) { // a survey calls those so that have lost their owner marks
			v.Close()
			continue
		}
		finding, err := v.Preview(ctx, at)
		p := v.Pipeline()
		if err == nil && finding == nil {
			found, err = true, e.explainUnselected(ctx, n, v, at)
		}
		e.written = v.LastWrite(ctx, at)
		v.Close()
		if err != nil {
			return found, err
		}
		if finding == nil {
			continue
		}
		found = true
		e.take(ctx, p, finding, false)
		for _, c := range finding.Changes {
			if c.Target.Name == "" || c.Action == preview.Create {
				continue
			}
			if _, err := e.down(ctx, c.Kind.GroupKind(), c.Target); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// namedRow is the upstream that a person named. A row is named by its key, or as get shows it.
func namedRow(v *survey.Survey, at operator.Ref) operator.Ref {
	if !v.Pipeline().HasRows() {
		return at
	}
	byKey := operator.Ref{Name: desired.RowName(at.Name)}
	if refs := v.Refs(); slices.Contains(refs, at) && !slices.Contains(refs, byKey) {
		return at
	}
	return byKey
}
