package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// slot says which of the upstream's desired objects a part of the memory is about: the one of a downstream, wherever it stands, or
// the one at a place of a downstream with several objects.
type slot struct {
	downstream int
	// item is the place of one of several objects; else zero.
	item pipeline.Ref
}

// objectMemory is what is remembered of one desired object.
type objectMemory struct {
	target
	since    int
	read     response
	baseline baseline
}

// alignMemory orders what is remembered of the upstream's objects, and what has failed, like the objects of the desired state.
func (r *reconciliation) alignMemory() {
	was := r.record.slots
	if r.record.align(); len(r.failures) == 0 || slices.Equal(was, r.record.slots) {
		return
	}
	failures, backingOff := r.failures, r.backingOff
	r.failures, r.backingOff = map[int]*pipeline.Failure{}, map[int]bool{}
	for k, s := range r.record.slots {
		if old := slices.Index(was, s); old >= 0 && failures[old] != nil {
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
	for k, s := range r.slots {
		r.park(s, r.memoryOf(k))
	}
	r.changes++
	objects := r.desired.Objects
	r.slots, r.targets, r.read, r.baselines = make([]slot, len(objects)), make([]target, len(objects)), make([]response, len(objects)), nil
	r.since = make([]int, len(objects))
	for k := range objects {
		r.slots[k], r.since[k] = slotOf(&objects[k]), r.changes
		if m, ok := r.parked[r.slots[k]]; ok {
			r.targets[k], r.read[k], r.since[k] = m.target, m.read, m.since
			r.keepBaseline(k, m.baseline)
			delete(r.parked, r.slots[k])
		}
	}
	for s, m := range r.parked {
		if r.desired.Unknown(s.downstream) {
			continue
		}
		if m.read.live != nil {
			r.unplaced = append(r.unplaced, unplacedResponse{s.downstream, m.read})
		}
		if delete(r.parked, s); m.uid != "" {
			r.left = append(r.left, witness{place{s.downstream, m.at}, m.uid, r.changes})
		}
	}
	if len(r.parked) == 0 {
		r.parked = nil
	}
}

func (r *record) isAligned() bool {
	if len(r.slots) != len(r.desired.Objects) || len(r.parked) > 0 {
		return false
	}
	for k, s := range r.slots {
		if s != slotOf(&r.desired.Objects[k]) {
			return false
		}
	}
	return true
}

func slotOf(o *pipeline.DesiredObject) slot {
	if !o.Several {
		return slot{downstream: o.Downstream}
	}
	return slot{o.Downstream, o.Target}
}

func (r *record) memoryOf(k int) objectMemory {
	m := objectMemory{target: r.targets[k], read: r.read[k], since: r.since[k]}
	if r.baselines != nil {
		m.baseline = r.baselines[k]
	}
	return m
}

// park keeps what is remembered of an object until align finds it again.
func (r *record) park(s slot, m objectMemory) {
	if r.parked == nil {
		r.parked = map[slot]objectMemory{}
	}
	r.parked[s] = m
}

// dropResponses drops the responses about such objects of downstreams, and reports whether there was any. It is called with the lock.
// Several watches may show one object: a response counts until the one of its own downstream has caught up.
func (r *record) dropResponses(such func(downstream int, to response) bool) (found bool) {
	for k := range r.read {
		if to := r.read[k]; to.live != nil && such(r.slots[k].downstream, to) {
			r.read[k], found = response{}, true
		}
	}
	for s, m := range r.parked {
		if m.read.live != nil && such(s.downstream, m.read) {
			m.read, found = response{}, true
			r.parked[s] = m
		}
	}
	before := len(r.unplaced)
	r.unplaced = slices.DeleteFunc(r.unplaced, func(u unplacedResponse) bool { return such(u.downstream, u.response) })
	return found || len(r.unplaced) < before
}

// anyTarget reports whether anything is remembered of such an object.
func (r *record) anyTarget(such func(target) bool) bool {
	for _, m := range r.parked {
		if such(m.target) {
			return true
		}
	}
	return slices.ContainsFunc(r.targets, such)
}

// keepBaseline keeps a baseline in slot k. It is called with the lock.
func (r *record) keepBaseline(k int, b baseline) {
	if r.baselines == nil {
		if b.uid == "" {
			return
		}
		r.baselines = make([]baseline, len(r.slots))
	}
	r.baselines[k] = b
}

// baselineOf is what setBaseline kept for the object of that uid, of a downstream; nil for nothing.
func (r *record) baselineOf(downstream int, uid types.UID) *drift.Sum {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, b := range r.baselines {
		if b.uid == uid && r.slots[k].downstream == downstream {
			return b.sum
		}
	}
	return nil
}
