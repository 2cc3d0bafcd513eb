package reconcile

import (
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// contributions are the upstreams that set fields of objects of others, by the object: before the first apply, no mark on it says whom
// its events concern.
type contributions struct {
	mu       sync.Mutex
	byObject map[pipeline.Ref][]pipeline.Ref
	objects  map[pipeline.Ref][]pipeline.Ref // of each upstream
}

// set replaces the objects of an upstream.
func (c *contributions) set(upstream pipeline.Ref, objects []pipeline.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, object := range c.objects[upstream] {
		left := slices.DeleteFunc(c.byObject[object], func(ref pipeline.Ref) bool { return ref == upstream })
		if c.byObject[object] = left; len(left) == 0 {
			delete(c.byObject, object)
		}
	}
	if len(objects) == 0 {
		delete(c.objects, upstream)
		return
	}
	if c.objects == nil {
		c.byObject, c.objects = map[pipeline.Ref][]pipeline.Ref{}, map[pipeline.Ref][]pipeline.Ref{}
	}
	c.objects[upstream] = objects
	for _, object := range objects {
		c.byObject[object] = append(c.byObject[object], upstream)
	}
}

// upstreams are those of an object.
func (c *contributions) upstreams(object pipeline.Ref) []pipeline.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.byObject[object])
}

// noteContributions records which objects of others the desired state is about.
func (r *reconciliation) noteContributions() {
	var objects []pipeline.Ref
	for _, o := range r.record.desired.Objects {
		if o.Err == nil && o.Wanted && r.Pipeline.Downstreams[o.Downstream].OwnsFields() && !slices.Contains(objects, o.Target) {
			objects = append(objects, o.Target)
		}
	}
	r.contributions.set(r.ref, objects)
}
