package memory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// FreshFor bounds how long a response is preferred to the cache: an informer that lags longer is not waited for.
const FreshFor = 15 * time.Second

// response is a live object in a response, and until when that counts if the cache does not show the object.
type response struct {
	Live  *drift.Live
	Until time.Time
}

// counts reports whether a response counts if the cache does not show its object. A terminating object counts until it
// is known to be gone: what must be deleted after it would be deleted too early otherwise.
func (r response) counts(now time.Time) bool { return r.Live.Deleting || now.Before(r.Until) }

// Unplaced is a response about an object of a downstream that has no slot.
type Unplaced struct {
	Downstream int
	response
}

// Newer reports whether resource version a is later than b; false if they cannot be compared.
func Newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}

// isOutdated reports whether the cache shows a later state of an object, or a later object, than a response. An object
// that is being deleted remains so.
func isOutdated(response, cached *drift.Live) bool {
	switch {
	case cached == nil:
		return false
	case cached.UID == response.UID && cached.Deleting != response.Deleting:
		return cached.Deleting
	}
	return !Newer(response.ResourceVersion, cached.ResourceVersion)
}

// Remember keeps a response about object k of the desired state until the cache has caught up with it.
func (s *shared) Remember(k int, live *drift.Live, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.list[k].read.Edit() = response{live, now.Add(FreshFor)}
}

// RememberUnplaced keeps a response about an object whose place in the desired state, if it has one, does not matter.
func (s *shared) RememberUnplaced(downstream int, live *drift.Live, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.displace(downstream, response{live, now.Add(FreshFor)})
}

// RememberBefore keeps the response about the deletion.before object.
func (s *shared) RememberBefore(live *drift.Live, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.beforeRead.Edit() = response{live, now.Add(FreshFor)}
}

// LastBeforeRead is what RememberBefore kept, and until when it counts if the cache does not show the object.
func (s *shared) LastBeforeRead() (*drift.Live, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.beforeRead.Get()
	return read.Live, read.Until
}

// Latest chooses between the object that the cache has at a target and our last response about it, which counts until
// then if the cache does not show the object. The cache is read under the lock: an object is in the cache before its
// event drops the response.
func (u *Upstream) Latest(
	k int, at operator.Ref, cache func() *drift.Live, now time.Time,
) (live *drift.Live, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	cached, o := cache(), u.list[k]
	if u.HasLeft(cached, now) {
		cached = nil
	}
	switch fresh := o.read.Get(); {
	case fresh.Live == nil:
	case operator.RefOf(fresh.Live) != at: // it is superseded
		u.displace(o.downstream, fresh)
		o.read.Reset()
	case !now.Before(fresh.Until) || isOutdated(fresh.Live, cached):
		o.read.Reset()
	default:
		return fresh.Live, fresh.Until
	}
	for _, r := range u.unplaced.Get() { // it was deleted or released, and is desired again
		if r.Downstream == o.downstream && operator.RefOf(r.Live) == at && r.counts(now) && !isOutdated(r.Live, cached) {
			return r.Live, r.Until
		}
	}
	return cached, time.Time{}
}

// Unshown lists, by downstream, the objects of responses that still count and that the cache does not show as they are.
// The others are dropped: whoever asks decides without them, so that their events are not echoes.
func (s *shared) Unshown(downstreams int, cache func(Place) *drift.Live, now time.Time) [][]*drift.Live {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(_ int, to response) bool { return !to.counts(now) })
	list := make([][]*drift.Live, downstreams)
	s.drop(func(i int, to response) bool {
		if !isOutdated(to.Live, cache(Place{i, operator.RefOf(to.Live)})) {
			list[i] = append(list[i], to.Live)
		}
		return false
	})
	return list
}

// Terminating are the responses about objects that are being deleted.
func (s *shared) Terminating() (list []Unplaced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.unplaced.Get() {
		if r.Live.Deleting {
			list = append(list, r)
		}
	}
	return list
}

// IsEchoOf reports whether an event of a watch of a downstream shows what our own write returned: the reconciliation
// that made the request has handled its response.
func (s *shared) IsEchoOf(downstream int, live *drift.Live) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(func(i int, to response) bool {
		return i == downstream && to.Live.UID == live.UID && to.Live.ResourceVersion == live.ResourceVersion
	})
}

// NoteUnwatched drops a response about an object that a watch of a downstream does not show any more.
func (s *shared) NoteUnwatched(downstream int, uid types.UID) {
	s.dropResponsesAbout(uid, func(i int) bool { return i == downstream })
}

func (s *shared) dropResponsesAbout(uid types.UID, of func(downstream int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(i int, to response) bool { return of(i) && to.Live.UID == uid })
	if l := s.beforeRead.Get().Live; l != nil && l.UID == uid && of(operator.BeforeIndex) {
		s.beforeRead.Reset()
	}
}

// SetBaseline keeps the projection of the object of that uid after an apply of object k; nil if it is what was sent,
// which is kept only if the upstream's status may record another one, or another projection is kept.
func (s *shared) SetBaseline(k int, uid types.UID, sum *canonical.Sum, recorded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isKept := func(m *Object) bool { return m.baseline.isSet() }
	if sum != nil || recorded || slices.ContainsFunc(s.list, isKept) {
		*s.list[k].baseline.Edit() = baseline{uid, sum}
	}
}

// Baseline returns what SetBaseline kept for the object of that uid, of a downstream; known is false if it kept
// nothing.
func (s *shared) Baseline(downstream int, uid types.UID) (sum *canonical.Sum, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.list {
		if b := m.baseline.Get(); m.baseline.isSet() && b.uid == uid && m.downstream == downstream {
			return b.sum, true
		}
	}
	return nil, false
}
