package informers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	metav1.ObjectMeta // name, namespace, uid and resourceVersion only
	digest            drift.Sum
	text              []byte
}

// GetObjectKind makes it a runtime.Object, as an informer requires.
func (i *input) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns i itself, which never changes.
func (i *input) DeepCopyObject() runtime.Object { return i }

// keepInput is the transform of an input's view.
func keepInput(view pipeline.InputView) cache.TransformFunc {
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
		return &input{digest: drift.Digest(cut), text: compressed(text), ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		}}, nil
	}
}

// Digest implements Input.
func (i *input) Digest() drift.Sum { return i.digest }

// Unpack implements Input.
func (i *input) Unpack() (map[string]any, error) {
	obj := map[string]any{}
	if err := unpackInto(i.text, &obj); err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", i.Namespace, i.Name, err)
	}
	return obj, nil
}
