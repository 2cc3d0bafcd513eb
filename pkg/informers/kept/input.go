package kept

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Input is an input in the cache: what is read of it, as JSON, and its digest. An event that does not change the digest
// is ignored.
type Input struct {
	identity
	digest canonical.Sum
	text   text
	listed bool // the input is a list
	match  desired.Match
}

// GetObjectKind makes it a runtime.Object, as an informer requires.
func (i *Input) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns i itself, which never changes.
func (i *Input) DeepCopyObject() runtime.Object { return i }

// KeepInput is the transform of an input's view.
func (t *Texts) KeepInput(view desired.InputView) func(any) (any, error) {
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
		i := &Input{identity: identityOf(u), digest: canonical.Digest(cut), listed: view.Matching != nil,
			match: view.Match(u.Object)}
		t.put(u.GroupVersionKind(), text, &i.text)
		return i, nil
	}
}

// Match implements pipeline.Object.
func (i *Input) Match() desired.Match { return i.match }

// ByListing indexes the objects of inputs that are lists: by namespace, by namespace and key, and by key.
const ByListing = "listing"

// ListingsOf are the keys under which an input is found that is read as one of a list; none for any other object.
func ListingsOf(obj any) ([]string, error) {
	i, ok := obj.(*Input)
	if !ok || !i.listed {
		return nil, nil
	}
	return []string{i.Namespace, i.Namespace + "/" + i.match.Key, "/" + i.match.Key}, nil
}

// Listings are the values of byListing under which the objects of a list are; none means all.
func Listings(listing *desired.Listing) []string {
	switch {
	case listing.Key != "":
		// without a key, only the expression decides
		return []string{listing.Namespace + "/" + listing.Key, listing.Namespace + "/"}
	case listing.Namespace != "":
		return []string{listing.Namespace}
	}
	return nil
}

// Digest implements Input.
func (i *Input) Digest() canonical.Sum { return i.digest }

// Unpack implements Input.
func (i *Input) Unpack() (map[string]any, error) {
	obj, err := i.text.object()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", i.Namespace, i.Name, err)
	}
	return obj, nil
}
