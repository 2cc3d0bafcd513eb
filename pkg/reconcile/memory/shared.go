package memory

import (
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// shared is what is remembered of an upstream for several goroutines. mu guards it; only the worker that holds the key
// changes the list.
type shared struct {
	mu sync.Mutex
	// list is like the objects of the desired state.
	list []*Object
	// parked is what is remembered of objects that the desired state does not have at present.
	parked map[slot]*Object
	// unplaced are the responses about objects that the desired state no longer has, while they are newer than the cache.
	unplaced Rare[[]Unplaced]
	// beforeRead is the response to our last request for the deletion.before object.
	beforeRead Rare[response]
	// own is what our last write to the upstream returned, while it is newer than the cache.
	own *unstructured.Unstructured
	// inputs are those that rules and templates read.
	inputs Rare[Inputs]
	// states and verdict are as they were counted; the zero handle is none.
	states  []State
	verdict unique.Handle[status.Verdict]
	// inSync is the verdict of Ready if the last reconcile, or count, left nothing to do before the next event; the zero
	// handle otherwise.
	inSync unique.Handle[status.Verdict]
	// changes counts how often objects changed.
	changes int32
	// isForgotten is true once the upstream is not counted any more in the metrics.
	isForgotten bool
	// isDesiredCurrent is true if the desired state was rendered from own, so that its event needs no work.
	isDesiredCurrent bool
}

// align orders what is remembered like the objects of the desired state. It returns, for each of these, the index that
// it had before, -1 for none; nil if nothing has changed. What is remembered of an object that is not among them is
// kept while it is not known which objects its downstream should have; then only that the object is the upstream's own,
// which it gives to left.
func (s *shared) align(w *operator.Desired, left func(Witness)) (from []int) {
	if s.isAligned(w) {
		return nil
	}
	before := s.list
	for _, m := range before {
		s.park(m)
	}
	s.changes++
	s.list, from = make([]*Object, len(w.Objects)), make([]int, len(w.Objects))
	for k := range w.Objects {
		at := slotOf(&w.Objects[k])
		s.list[k] = &Object{slot: at, Since: int(s.changes)}
		if m, ok := s.parked[at]; ok {
			s.list[k] = m
			delete(s.parked, at)
		}
		from[k] = slices.Index(before, s.list[k])
	}
	for at, m := range s.parked {
		if w.Unknown(at.downstream) {
			continue
		}
		if read := m.read.Get(); read.Live != nil {
			s.displace(at.downstream, read)
		}
		if delete(s.parked, at); m.UID != "" {
			left(Witness{Place{at.downstream, m.at}, m.UID, int(s.changes), false})
		}
	}
	if len(s.parked) == 0 {
		s.parked = nil
	}
	if slices.Equal(before, s.list) {
		return nil
	}
	return from
}

func (s *shared) isAligned(w *operator.Desired) bool {
	if len(s.list) != len(w.Objects) || len(s.parked) > 0 {
		return false
	}
	for k := range s.list {
		if s.list[k].slot != slotOf(&w.Objects[k]) {
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

// of is what is remembered of the object of a slot; it is parked if the desired state has none.
func (s *shared) of(at slot) *Object {
	for _, m := range s.list {
		if m.slot == at {
			return m
		}
	}
	if s.parked[at] == nil {
		s.park(&Object{slot: at})
	}
	return s.parked[at]
}

// park keeps what is remembered of an object until align finds it again.
func (s *shared) park(m *Object) {
	if s.parked == nil {
		s.parked = map[slot]*Object{}
	}
	s.parked[m.slot] = m
}

// each calls use with what is remembered of each object.
func (s *shared) each(use func(*Object)) {
	for _, m := range s.list {
		use(m)
	}
	for _, m := range s.parked {
		use(m)
	}
}

// drop drops the responses about such objects of downstreams, and reports whether there was any.
// Several watches may show one object: a response counts until the one of its own downstream has caught up.
func (s *shared) drop(such func(downstream int, to response) bool) (dropped bool) {
	s.each(func(m *Object) {
		if to := m.read.Get(); to.Live != nil && such(m.downstream, to) {
			m.read.Reset()
			dropped = true
		}
	})
	if s.unplaced.isSet() {
		list := s.unplaced.Edit()
		before := len(*list)
		*list = slices.DeleteFunc(*list, func(u Unplaced) bool { return such(u.Downstream, u.response) })
		if dropped = dropped || len(*list) < before; len(*list) == 0 {
			s.unplaced.Reset()
		}
	}
	return dropped
}

// displace keeps a response about an object that is no longer wanted.
func (s *shared) displace(downstream int, to response) {
	list := s.unplaced.Edit()
	*list = append(*list, Unplaced{downstream, to})
}

// hasResponses reports whether any response counts.
func (s *shared) hasResponses() (has bool) {
	s.drop(func(int, response) bool {
		has = true
		return false
	})
	return has
}

// lastWrite is when we wrote the object at a place last.
func (s *shared) lastWrite(at Place) (last time.Time) {
	s.each(func(m *Object) {
		if wrote := m.Contest.Get().last; m.at == at.At && wrote.After(last) {
			last = wrote
		}
	})
	return last
}

// Object is what is remembered of object k of the desired state.
func (s *shared) Object(k int) *Object { return s.list[k] }

// Has reports whether the object of that uid is known as one of the desired objects, of a downstream or, with NoIndex,
// of any.
func (s *shared) Has(uid types.UID, downstream int) bool {
	for _, m := range s.list {
		if m.UID == uid && (downstream == operator.NoIndex || m.downstream == downstream) {
			return true
		}
	}
	return false
}

// HadAt reports whether an object of ours is, or was, at a place.
func (s *shared) HadAt(at operator.Ref) (had bool) {
	s.each(func(m *Object) { had = had || m.at == at })
	return had
}
