package departures

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// LostUpstreams are upstreams that were deleted with the finalizer on them, and without a deletionTimestamp: an API
// server that deletes an upstream at the moment that its finalizer is added may not see that. What was made for them is
// cleaned up as if they had waited for it.
type LostUpstreams struct {
	mu sync.Mutex
	by map[operator.Ref]lostUpstream
	// added has the upstreams that got the finalizer since begun, and before those of the time before that.
	added, before map[types.UID]struct{}
	begun         time.Time
}

// lostUpstream is the last state of an upstream that is gone, and when its watch showed that.
type lostUpstream struct {
	last *unstructured.Unstructured
	at   time.Time
}

const (
	// lostFor is how long a deletion counts as one that came together with the finalizer, and how long cleaning up is
	// tried. Later, the objects stay; if another upstream wants their names, its status says so.
	lostFor  = time.Minute
	mostLost = 1000
)

// NoteFinalizer records that an upstream is about to get the finalizer.
func (l *LostUpstreams) NoteFinalizer(uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.begun) > lostFor {
		l.added, l.before, l.begun = map[types.UID]struct{}{}, l.added, now
	}
	l.added[uid] = struct{}{}
}

// Note records an upstream that is gone, if it got the finalizer a short time ago.
func (l *LostUpstreams) Note(last *unstructured.Unstructured, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.added[last.GetUID()]
	if _, before := l.before[last.GetUID()]; !ok && !before || len(l.by) >= mostLost {
		return
	}
	if l.by == nil {
		l.by = map[operator.Ref]lostUpstream{}
	}
	l.by[operator.Ref{Namespace: last.GetNamespace(), Name: last.GetName()}] = lostUpstream{last, now}
}

// Get is the last state of the lost upstream of that name; nil for none.
func (l *LostUpstreams) Get(ref operator.Ref, now time.Time) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lost, ok := l.by[ref]; ok && now.Sub(lost.at) <= lostFor {
		return lost.last
	}
	delete(l.by, ref)
	return nil
}

// Forget is for one that is cleaned up after, or given up.
func (l *LostUpstreams) Forget(ref operator.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, ref)
}
