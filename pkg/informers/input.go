package informers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// input is an input in the cache: what is read of it, as compressed JSON, and its digest. An event that does not change the
// digest is ignored.
type input struct {
	identity
	digest drift.Sum
	text   text
	listed bool // the input is a list
	match  pipeline.Match
}

// GetObjectKind makes it a runtime.Object, as an informer requires.
func (i *input) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns i itself, which never changes.
func (i *input) DeepCopyObject() runtime.Object { return i }

// keepInput is the transform of an input's view.
func (t *texts) keepInput(view pipeline.InputView) cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		cut := view.Cut(u.Object)
		text, err := utiljson.Marshal(cut)
		if err != nil {
			return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
		}
		return &input{
			identity: identityOf(u), digest: drift.Digest(cut), text: t.compress(u.GroupVersionKind(), text),
			listed: view.Matching != nil, match: view.Match(u.Object),
		}, nil
	}
}

// Match implements pipeline.Object.
func (i *input) Match() pipeline.Match { return i.match }

// byListing indexes the objects of inputs that are lists: by namespace, by namespace and key, and by key.
const byListing = "listing"

func listingsOf(obj any) ([]string, error) {
	i, ok := obj.(*input)
	if !ok || !i.listed {
		return nil, nil
	}
	return []string{i.Namespace, i.Namespace + "/" + i.match.Key, "/" + i.match.Key}, nil
}

// listings are the values of byListing under which the objects of a list are; none means all.
func listings(of *pipeline.Listing) []string {
	switch {
	case of.Key != "":
		return []string{of.Namespace + "/" + of.Key, of.Namespace + "/"} // without a key, only the expression decides
	case of.Namespace != "":
		return []string{of.Namespace}
	}
	return nil
}

// Digest implements Input.
func (i *input) Digest() drift.Sum { return i.digest }

// Unpack implements Input.
func (i *input) Unpack() (map[string]any, error) {
	obj, err := i.text.object()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", i.Namespace, i.Name, err)
	}
	return obj, nil
}
