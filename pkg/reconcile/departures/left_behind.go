package departures

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// LeftBehind are the upstreams that a changed config does not select any more.
type LeftBehind struct {
	mu sync.Mutex
	// reported are the uids of those whose status was written, even if someone has overwritten it since.
	reported map[types.UID]struct{}
	// dropped are those in namespaces that were watched until just now.
	dropped map[operator.Ref]struct{}
}

// IsNew reports whether the upstream of that uid was not reported before, and notes that it is now.
func (l *LeftBehind) IsNew(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported == nil {
		l.reported = map[types.UID]struct{}{}
	}
	_, known := l.reported[uid]
	l.reported[uid] = struct{}{}
	return !known
}

// Forget is for one that could not be reported.
func (l *LeftBehind) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reported, uid)
}

// Drop notes an upstream in a namespace that is no longer watched.
func (l *LeftBehind) Drop(ref operator.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped == nil {
		l.dropped = map[operator.Ref]struct{}{}
	}
	l.dropped[ref] = struct{}{}
}

// Take reports whether an upstream was left behind, and forgets it.
func (l *LeftBehind) Take(ref operator.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.dropped[ref]
	delete(l.dropped, ref)
	return ok
}
