package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// given are objects from files that stand for what an API server would have, by kind and place.
type given map[givenKey]*unstructured.Unstructured

type givenKey struct {
	kind schema.GroupKind
	at   pipeline.Ref
}

// add takes an object in as the API server would return it: a Secret's stringData is data.
func (g given) add(u *unstructured.Unstructured, namespace string) error {
	content, err := drift.Canonical(u.Object)
	if err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	u = &unstructured.Unstructured{Object: content}
	if u.GetNamespace() != "" {
		namespace = u.GetNamespace()
	}
	g[givenKey{u.GroupVersionKind().GroupKind(), pipeline.Ref{Namespace: namespace, Name: u.GetName()}}] = u
	return nil
}

// inputsFor finds the inputs of an upstream among the given objects.
func (g given) inputsFor(ctx context.Context, p *pipeline.Pipeline, upstream *unstructured.Unstructured) pipeline.Inputs {
	return p.InputsAt(p.InputRefs(ctx, upstream), func(s *pipeline.InputSource, at pipeline.Ref) map[string]any {
		u := g[givenKey{s.Kind.GVK.GroupKind(), at}]
		if u == nil {
			return nil
		}
		return s.View.Cut(u.Object)
	})
}

// readInputs reads the files of --inputs. An object of a namespaced kind without a namespace is in the one given; that a
// cluster-scoped one gets one too is mended by entering it without, as well.
func readInputs(paths []string, streams IO, namespace string) (given, []error) {
	if namespace == "" {
		namespace = "default"
	}
	list, errs := readUpstreams(paths, streams.In)
	g := given{}
	for _, u := range list {
		for _, ns := range []string{namespace, ""} {
			if err := g.add(u.object, ns); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", u.where, err))
			}
		}
	}
	return g, errs
}
