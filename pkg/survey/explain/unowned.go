package explain

import (
	"context"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// readersTold is how many of an input's readers are named.
const readersTold = 10

// explainUnowned says what an object that has no mark has to do with the operators: as an input it is read, and where
// nothing else is known of it (inTheWay), it may be where a downstream is to be. All upstreams that can have to do
// with it are looked at, since no mark leads to them.
func (e *explanation) explainUnowned(ctx context.Context, k kinds.Kind, inTheWay bool) (bool, error) {
	concerned := false
	for n, f := range e.Files {
		target, narrow := inTheWay && hasDownstream(f, k), staysInNamespace(f, k)
		if !target && !hasInput(f, k) {
			continue
		}
		namespace := ""
		if narrow {
			namespace = e.object.At.Namespace
		}
		found, err := e.explainUnownedBy(ctx, n, namespace, target)
		if err != nil {
			return concerned, err
		}
		concerned = concerned || found
	}
	return concerned, nil
}

// explainUnownedBy is unowned for one operator.
func (e *explanation) explainUnownedBy(ctx context.Context, n int, namespace string, target bool) (bool, error) {
	v, err := e.Open(ctx, n, namespace)
	if err != nil {
		return false, err
	}
	defer v.Close()
	p := v.Pipeline()
	found, readers := false, 0
	err = v.Visit(ctx, v.Refs(), func(f *preview.Finding) error {
		if f.Upstream == nil {
			return nil
		}
		for i, ref := range p.InputRefs(ctx, f.Upstream) {
			isInput := ref.At == e.object.At || f.Inputs.Lists(p.Inputs[i], e.object.At)
			if !isInput || p.Inputs[i].Kind.GVK.GroupKind() != e.object.Kind.GroupKind() {
				continue
			}
			if readers++; readers <= readersTold {
				e.remark(fmt.Sprintf("%s is input %s of %s (operator %s)", e.object, p.Inputs[i].Name,
					findings.Upstream(p, f), p.Name))
			}
		}
		if key := fmt.Sprint(n, f.Ref); target && !e.explained[key] && e.targets(f) {
			e.explained[key], found = true, true
			e.written = v.LastWrite(ctx, f.Ref)
			e.take(ctx, p, f, true)
		}
		return nil
	})
	if readers > readersTold {
		e.remark(fmt.Sprintf("%s is input of %d more (operator %s)", e.object, readers-readersTold, p.Name))
	}
	return found || readers > 0, err
}

// targets reports whether a downstream of an upstream is to be the object in question.
func (e *explanation) targets(f *preview.Finding) bool {
	for _, c := range f.Changes {
		if c.Target == e.object.At && c.Kind.GroupKind() == e.object.Kind.GroupKind() {
			return true
		}
	}
	return false
}

func hasInput(f *load.File, k kinds.Kind) bool {
	for _, i := range f.Inputs {
		if is(k, i.APIVersion, i.Kind) {
			return true
		}
	}
	return false
}

// staysInNamespace reports whether only upstreams of an object's own namespace can have to do with it.
func staysInNamespace(f *load.File, k kinds.Kind) bool {
	if !k.Namespaced {
		return false
	}
	for _, i := range f.Inputs {
		if is(k, i.APIVersion, i.Kind) && (i.Namespace != "" || i.List != nil && len(i.List.Namespaces) > 0) {
			return false
		}
	}
	for _, d := range f.Downstreams {
		if from := d.TargetNamespaces.From; is(k, d.APIVersion, d.Kind) && from != "" && from != config.NamespacesSame {
			return false
		}
	}
	return true
}
