package departures

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// LeftBehind are the upstreams that a changed config does not select any more.
type LeftBehind struct {
	// reported are the uids of those whose status was written, even if someone has overwritten it since.
	reported set[types.UID]
	// dropped are those in namespaces that were watched until just now.
	dropped set[operator.Ref]
}

// IsNew reports whether the upstream of that uid was not reported before, and notes that it is now.
func (l *LeftBehind) IsNew(uid types.UID) bool { return !l.reported.add(uid) }

// Forget is for one that could not be reported.
func (l *LeftBehind) Forget(uid types.UID) { l.reported.take(uid) }

// Drop notes an upstream in a namespace that is no longer watched.
func (l *LeftBehind) Drop(ref operator.Ref) { l.dropped.add(ref) }

// Take reports whether an upstream was left behind, and forgets it.
func (l *LeftBehind) Take(ref operator.Ref) bool {
	_, ok := l.dropped.take(ref)
	return ok
}
