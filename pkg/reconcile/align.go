package reconcile

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// slot says which of the upstream's desired objects a part of the memory is about: the one of a downstream, wherever it stands, or
// the one at a place of a downstream with several objects.
type slot struct {
	downstream int
	// item is the place of one of several objects; else zero.
	item operator.Ref
}

// objectMemory is what is remembered of one desired object.
type objectMemory struct {
	_ [0]sync.Mutex // go vet reports copies: others may change what mu guards meanwhile
	slot
	target
	// since is the change of the desired state at which the object was wanted for the first time.
	since int
	// read is the response to our last request, while it is newer than the cache. The record's mu guards it, and baseline.
	read rare[response]
	// baseline is the projection that our last apply returned if it differs from what we sent.
	baseline rare[baseline]
}

// alignMemory orders what is remembered of the upstream's objects, and what has failed, like the objects of the desired state.
func (r *reconciliation) alignMemory() {
	was := r.record.objects
	isOfSameSlot := func(a, b *objectMemory) bool { return a.slot == b.slot }
	if r.record.align(); len(r.failures) == 0 || slices.EqualFunc(was, r.record.objects, isOfSameSlot) {
		return
	}
	failures, backingOff := r.failures, r.backingOff
	r.failures, r.backingOff = map[int]*operator.Failure{}, map[int]bool{}
	for k, now := range r.record.objects {
		old := slices.IndexFunc(was, func(m *objectMemory) bool { return m.slot == now.slot })
		if old >= 0 && failures[old] != nil {
			r.failures[k], r.backingOff[k] = failures[old], backingOff[old]
		}
	}
}

// align orders what is remembered like the objects of the desired state. What is remembered of an object that is not among them
// is kept while it is not known which objects its downstream should have; then only that the object is the upstream's own.
func (r *record) align() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isAligned() {
		return
	}
	for _, m := range r.objects {
		r.park(m)
	}
	r.changes++
	objects := r.desired.Objects
	r.objects = make([]*objectMemory, len(objects))
	for k := range objects {
		s := slotOf(&objects[k])
		r.objects[k] = &objectMemory{slot: s, since: int(r.changes)}
		if m, ok := r.parked[s]; ok {
			r.objects[k] = m
			delete(r.parked, s)
		}
	}
	for s, m := range r.parked {
		if r.desired.Unknown(s.downstream) {
			continue
		}
		if read := m.read.get(); read.live != nil {
			r.displace(s.downstream, read)
		}
		if delete(r.parked, s); m.uid != "" {
			u := r.unusual.edit()
			u.left = append(u.left, witness{place{s.downstream, m.at}, m.uid, int(r.changes), false})
		}
	}
	if len(r.parked) == 0 {
		r.parked = nil
	}
}

func (r *record) isAligned() bool {
	if len(r.objects) != len(r.desired.Objects) || len(r.parked) > 0 {
		return false
	}
	for k := range r.objects {
		if r.objects[k].slot != slotOf(&r.desired.Objects[k]) {
			return false
		}
	}
	return true
}

func slotOf(o *operator.DesiredObject) slot {
	if !o.Several {
		return slot{downstream: o.Downstream}
	}
	return slot{o.Downstream, o.Target}
}

// objectOf is what is remembered of the object of a slot; it is parked if the desired state has none.
func (r *record) objectOf(s slot) *objectMemory {
	for _, m := range r.objects {
		if m.slot == s {
			return m
		}
	}
	if r.parked[s] == nil {
		r.park(&objectMemory{slot: s})
	}
	return r.parked[s]
}

// park keeps what is remembered of an object until align finds it again.
func (r *record) park(m *objectMemory) {
	if r.parked == nil {
		r.parked = map[slot]*objectMemory{}
	}
	r.parked[m.slot] = m
}

// dropResponses drops the responses about such objects of downstreams, and reports whether there was any. It is called with the lock.
// Several watches may show one object: a response counts until the one of its own downstream has caught up.
func (r *record) dropResponses(such func(downstream int, to response) bool) (found bool) {
	drop := func(m *objectMemory) bool {
		to := m.read.get()
		if to.live == nil || !such(m.downstream, to) {
			return false
		}
		m.read.reset()
		return true
	}
	for _, m := range r.objects {
		found = drop(m) || found
	}
	for _, m := range r.parked {
		found = drop(m) || found
	}
	if r.unplaced.isSet() {
		list := r.unplaced.edit()
		before := len(*list)
		*list = slices.DeleteFunc(*list, func(u unplacedResponse) bool { return such(u.downstream, u.response) })
		if found = found || len(*list) < before; len(*list) == 0 {
			r.unplaced.reset()
		}
	}
	return found
}

// displace keeps a response about an object that is no longer wanted. It is called with the lock.
func (r *record) displace(downstream int, to response) {
	list := r.unplaced.edit()
	*list = append(*list, unplacedResponse{downstream, to})
}

// rememberUnplaced keeps a response about an object whose place in the desired state, if it has one, does not matter.
func (r *record) rememberUnplaced(downstream int, live *drift.Live, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.displace(downstream, response{live: live, until: now.Add(freshFor)})
}

// hasResponses reports whether any response about an object of a downstream counts. It is called with the lock.
func (r *record) hasResponses() (has bool) {
	r.dropResponses(func(int, response) bool {
		has = true
		return false
	})
	return has
}

// anyTarget reports whether anything is remembered of such an object.
func (r *record) anyTarget(such func(target) bool) bool {
	for _, m := range r.parked {
		if such(m.target) {
			return true
		}
	}
	return slices.ContainsFunc(r.objects, func(m *objectMemory) bool { return such(m.target) })
}

// baselineOf is what setBaseline kept for the object of that uid, of a downstream; nil for nothing.
func (r *record) baselineOf(downstream int, uid types.UID) *canonical.Sum {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.objects {
		if b := m.baseline.get(); b.uid == uid && m.downstream == downstream {
			return b.sum
		}
	}
	return nil
}
