package reconcile

import (
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// awaited are the upstreams that wait for an object of others, by the place of the object: those in Conflict with it, those that set
// fields of it, and those that would delete it with what it is in. No mark on the object says that its events concern them.
type awaited struct {
	mu       sync.Mutex
	byObject map[operator.Ref][]operator.Ref // in the order in which they began to wait
	objects  map[operator.Ref][]operator.Ref // of each upstream
}

// others is what is known of objects of others.
type others struct {
	awaited awaited
	shared  shared
}

// set replaces the objects that an upstream waits for. It reports whether it did not wait for one of them before.
func (a *awaited) set(upstream operator.Ref, objects []operator.Ref) (added bool) {
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

// upstreams are those that wait for the object at a place.
func (a *awaited) upstreams(object operator.Ref) []operator.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.byObject[object])
}

// Awaiting lists the upstreams that wait for an object of others, first the one that has waited longest.
func (o *others) Awaiting(live *drift.Live) []operator.Ref {
	return o.awaited.upstreams(operator.Ref{Namespace: live.Namespace, Name: live.Name})
}

// decide decides by what is gathered, and once more if the upstream begins to wait for an object of others: what happened to it since it
// was gathered has woken nobody.
func (r *reconciliation) decide(gather func() operator.Input) (operator.Input, operator.Decision) {
	in := gather()
	d := decide.Decide(r.Pipeline.Settings, in)
	if r.awaitOthers(in, d) {
		in = gather()
		d = decide.Decide(r.Pipeline.Settings, in)
	}
	return in, d
}

// awaitOthers records which objects of others the upstream waits for. It reports whether one is new.
func (r *reconciliation) awaitOthers(in operator.Input, d operator.Decision) bool {
	var objects []operator.Ref
	note := func(o operator.Outcome) {
		if !slices.Contains(objects, o.Target) {
			objects = append(objects, o.Target)
		}
	}
	for k, o := range d.Outcomes {
		w := &r.Memory.Desired().Objects[k]
		sets := w.Wanted && w.Err == nil && r.DownstreamOf(k).OwnsFields()
		if sets || o.State == operator.StateConflict || o.State == operator.StateWaiting && o.Theirs {
			note(o)
		}
	}
	if d.Before != nil && d.Before.State == operator.StateConflict {
		note(*d.Before)
	}
	for _, other := range in.Others { // they stay in what is to be deleted
		objects = append(objects, other.At)
	}
	return r.awaited.set(r.Ref, objects)
}
