package informers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Object is a watch of one object. A nil one shows nothing.
type Object struct {
	at  operator.Ref
	sub *subscription
}

// Object watches one object, with an identity's permissions. onResult is called with the result of every list and
// watch.
func (f *Factory) Object(
	as connections.Identity, gvr schema.GroupVersionResource, at operator.Ref, heard func(Key, error),
) (*Object, error) {
	key := Key{Identity: as, GVR: gvr, Namespace: at.Namespace, Fields: "metadata.name=" + at.Name, View: wholeView}
	sub, err := f.subscribe(key, keepWhole, cache.ResourceEventHandlerFuncs{}, heard)
	if err != nil {
		return nil, err
	}
	return &Object{at: at, sub: sub}, nil
}

// Get is the object that the watch shows; nil for none. It must not be changed.
func (o *Object) Get() *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	u, _ := stores{part{namespace: o.at.Namespace}: o.sub}.get(o.at).(*unstructured.Unstructured)
	return u
}

// Close ends the watch.
func (o *Object) Close() {
	if o != nil {
		o.sub.close()
	}
}
