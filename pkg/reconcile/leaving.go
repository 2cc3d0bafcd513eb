package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
)

// leaving is what is known of upstreams that go.
type leaving struct {
	cascades      departures.Cascades
	deselected    departures.Deselected
	leftBehind    departures.LeftBehind
	lostUpstreams departures.LostUpstreams
}

// IsLeaving reports whether an upstream was seen leaving and has not been cleaned up after.
func (l *leaving) IsLeaving(ref operator.Ref) bool { return l.deselected.Some(ref) }

// NoteLeft records that the watch no longer shows the upstream of that uid, which may exist without what the watch selects by.
func (l *leaving) NoteLeft(ref operator.Ref, uid types.UID) { l.deselected.Upstream(ref, uid) }

// Leaving lists the upstreams that were seen leaving and have not been cleaned up after.
func (l *leaving) Leaving() []operator.Ref { return l.deselected.Refs() }

// Cascades is the number of upstreams whose deletion it remembers.
func (l *leaving) Cascades() int { return l.cascades.Number() }

// NoteNamespaceLeft records that namespaces are no longer selected, or are again.
func (l *leaving) NoteNamespaceLeft(left bool, names ...operator.Ref) {
	l.deselected.Namespace(names, left)
}

// NoteDeleting records an upstream that is being deleted, with its finalizers, as the watch shows it.
func (l *leaving) NoteDeleting(uid types.UID, finalizers []string) { l.cascades.Note(uid, finalizers) }

// NoteUpstreamGone records that an upstream is gone.
func (l *leaving) NoteUpstreamGone(uid types.UID) { l.cascades.Forget(uid) }
