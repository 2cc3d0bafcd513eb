package offline

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Given are objects from files, used instead of those of an API server, by kind, namespace and name.
type Given map[givenKey]*unstructured.Unstructured

type givenKey struct {
	kind schema.GroupKind
	at   operator.Ref
}

// ReadGiven reads files. An object of a namespaced kind without a namespace is in the one given; that a cluster-scoped
// one gets one too is fixed by entering it without, as well.
func ReadGiven(paths []string, stdin io.Reader, namespace string) (Given, []error) {
	list, errs := Read(paths, stdin)
	g := Given{}
	for _, u := range list {
		for _, ns := range []string{cmp.Or(namespace, "default"), ""} {
			if err := g.Add(u.Object, ns); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", u.Where, err))
			}
		}
	}
	return g, errs
}

// Add adds an object as the API server would return it: a Secret's stringData becomes data. If the object has no
// namespace, it gets the given one. It returns an error for an object that an API server would refuse.
func (g Given) Add(u *unstructured.Unstructured, namespace string) error {
	content, err := canonical.Form(u.Object)
	if err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	u = &unstructured.Unstructured{Object: content}
	if u.GetNamespace() == "" && namespace != "" {
		u.SetNamespace(namespace)
	}
	g[givenKey{u.GroupVersionKind().GroupKind(), operator.Ref{Namespace: u.GetNamespace(), Name: u.GetName()}}] = u
	return nil
}

// inputsFor returns the inputs of an upstream, and its own objects that other downstreams read, from the given objects.
func (g Given) inputsFor(ctx context.Context, p *desired.Renderer, upstream *unstructured.Unstructured) desired.Inputs {
	return p.InputsAt(p.InputRefs(ctx, upstream),
		desired.WholeObjects(func(s *desired.InputSource) (list []*unstructured.Unstructured) {
			for key, u := range g {
				if key.kind == s.Kind.GVK.GroupKind() && s.Kind.Namespaced == (key.at.Namespace != "") {
					list = append(list, u)
				}
			}
			return list
		})).WithSiblings(func(downstream int, at operator.Ref) map[string]any {
		if u := g[givenKey{p.Downstreams[downstream].GVK().GroupKind(), at}]; u != nil {
			return u.Object
		}
		return nil
	})
}
