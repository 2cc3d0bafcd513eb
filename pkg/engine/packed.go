package engine

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// packed is an upstream as the cache keeps it: what watches ask for, and everything but managedFields as compressed JSON.
// Most upstreams are looked at once and then lie for days, and a tree of Go maps takes two to five times the room.
type packed struct {
	metav1.ObjectMeta // name, namespace, uid and resourceVersion only
	text              []byte
}

// packedView names the view of upstreams.
const packedView = "packed"

// pack is the transform of packedView. It may change the object: nobody else has seen it yet.
func pack(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	u.SetManagedFields(nil)
	text, err := utiljson.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return &packed{text: bytes.Clone(s2.Encode(nil, text)), ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
	}}, nil
}

// unpack returns the object, as a copy of its own.
func (p *packed) unpack() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	text, err := s2.Decode(nil, p.text)
	if err == nil {
		err = utiljson.Unmarshal(text, &u.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", p.Namespace, p.Name, err)
	}
	return u, nil
}

// GetObjectKind and DeepCopyObject make it a runtime.Object, as a watch's cache demands.
func (p *packed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns p itself, which never changes.
func (p *packed) DeepCopyObject() runtime.Object { return p }
