package kept

import (
	"errors"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// Returned are the objects that the API server returned for the last writes of this process. A watch shows each of them once more, and need
// not read it again. They are not kept in memory for that: what nobody else holds is read again.
type Returned struct {
	mu   sync.Mutex
	last [64]response // a write and its event are milliseconds apart
	next int
}

// response is an object as a write returned it, and what a view keeps of it.
type response struct {
	version
	object weak.Pointer[unstructured.Unstructured]
	view   string
	live   weak.Pointer[drift.Live]
}

// version identifies a state of an object, as one version of its kind shows it.
type version struct {
	apiVersion, kind string
	uid              types.UID
	resourceVersion  string
}

func versionOf(u *unstructured.Unstructured) version {
	return version{u.GetAPIVersion(), u.GetKind(), u.GetUID(), u.GetResourceVersion()}
}

// Add notes what a write returned.
func (r *Returned) Add(u *unstructured.Unstructured, view string, live *drift.Live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[r.next] = response{version: versionOf(u), object: weak.Make(u), view: view, live: weak.Make(live)}
	r.next = (r.next + 1) % len(r.last)
}

// isEmpty reports whether nothing is in memory any more.
func (r *Returned) isEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.last {
		if r.last[i].uid != "" && r.last[i].object.Value() != nil {
			return false
		}
	}
	return true
}

// find calls use with the responses about a version, until it returns true.
func (r *Returned) find(v version, use func(response) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.last {
		if r.last[i].version == v && use(r.last[i]) {
			return
		}
	}
}

// object is a version as it was returned; nil if it was not, or is not in memory any more.
func (r *Returned) object(v version) (u *unstructured.Unstructured) {
	r.find(v, func(found response) bool {
		u = found.object.Value()
		return u != nil
	})
	return u
}

// Transform is the transform of a view, which makes nothing of an object twice.
func (r *Returned) Transform(view string, transform func(any) (any, error)) func(any) (any, error) {
	return func(obj any) (any, error) {
		var live *drift.Live
		if u, ok := obj.(*unstructured.Unstructured); ok && u != nil {
			r.find(versionOf(u), func(found response) bool {
				if found.view == view && found.object.Value() == u {
					live = found.live.Value()
				}
				return live != nil
			})
		}
		if live != nil {
			return live, nil
		}
		return transform(obj)
	}
}

// ReturnedCodec reads the objects of a watch as objectCodec does, but for those that were returned.
type ReturnedCodec struct {
	ObjectCodec
	Returned *Returned
}

// Decode reads an object; those of a watch come without into.
func (c ReturnedCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil && !c.Returned.isEmpty() {
		if v, err := decodeVersion(data); err == nil {
			if u := c.Returned.object(v); u != nil {
				gvk := u.GroupVersionKind()
				return u, &gvk, nil
			}
		}
	}
	return c.ObjectCodec.Decode(data, defaults, into)
}

// decodeVersion reads which version of which object JSON has. API servers write the rest of it behind that.
func decodeVersion(data []byte) (version, error) {
	r, done := newReader(data)
	defer done()
	var h head
	err := r.head(&h, func() bool { return h.APIVersion != "" && h.Kind != "" && h.Metadata.UID != "" })
	if errors.Is(err, errEnough) {
		err = nil
	}
	return version{h.APIVersion, h.Kind, h.Metadata.UID, h.Metadata.ResourceVersion}, err
}
