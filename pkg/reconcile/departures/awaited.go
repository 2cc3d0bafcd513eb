package departures

import (
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Awaited are the upstreams that wait for an object of others, by the place of the object: those in Conflict with it,
// those that set fields of it, and those that would delete it with what it is in. No mark on the object says that its
// events concern them.
type Awaited struct {
	mu       sync.Mutex
	byObject map[operator.Ref][]operator.Ref // in the order in which they began to wait
	objects  map[operator.Ref][]operator.Ref // of each upstream
}

// Set replaces the objects that an upstream waits for. It reports whether it did not wait for one of them before.
func (a *Awaited) Set(upstream operator.Ref, objects []operator.Ref) (added bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.objects[upstream]
	for _, object := range before {
		if slices.Contains(objects, object) {
			continue
		}
		left := slices.DeleteFunc(a.byObject[object], func(ref operator.Ref) bool { return ref == upstream })
		if a.byObject[object] = left; len(left) == 0 {
			delete(a.byObject, object)
		}
	}
	if len(objects) == 0 {
		delete(a.objects, upstream)
		return false
	}
	if a.objects == nil {
		a.byObject, a.objects = map[operator.Ref][]operator.Ref{}, map[operator.Ref][]operator.Ref{}
	}
	for _, object := range objects {
		if !slices.Contains(before, object) {
			a.byObject[object], added = append(a.byObject[object], upstream), true
		}
	}
	a.objects[upstream] = objects
	return added
}

// Upstreams are those that wait for the object at a place.
func (a *Awaited) Upstreams(object operator.Ref) []operator.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.byObject[object])
}
