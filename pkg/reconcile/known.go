package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// known is what is remembered of the upstreams of an operator.
type known struct {
	memory     memory.Upstreams
	readers    observe.Readers
	unstorable write.Unstorable
}

// IsEcho reports whether an event of an upstream is about our own write, which needs no work.
func (k *known) IsEcho(ref operator.Ref, uid types.UID, version string) bool {
	rec := k.memory.Peek(ref)
	return rec != nil && rec.IsEcho(uid, version)
}

// IsEchoOf is IsEcho for an object that an upstream owns, in the watch of downstream i, or BeforeIndex.
func (k *known) IsEchoOf(i int, ref operator.Ref, live *drift.Live) bool {
	rec := k.memory.Peek(ref)
	return rec != nil && rec.IsEchoOf(i, live)
}

// NoteDownstreamGone records that the watch of downstream i, or BeforeIndex, no longer shows an object that an upstream
// owns.
func (k *known) NoteDownstreamGone(i int, ref operator.Ref, uid types.UID) {
	if rec := k.memory.Peek(ref); rec != nil {
		rec.NoteUnwatched(i, uid)
	}
}

// RetryRefused forgets which values of status fields the API server refused, since the kind may have changed, and
// returns the upstreams that had some, of a namespace or of all if it is empty.
func (k *known) RetryRefused(namespace string) []operator.Ref {
	return k.unstorable.Expire(namespace)
}

// IsInSync reports whether Reconcile has nothing to do for the upstream of that uid, according to its last reconcile or
// count. What happened since then has an event.
func (k *known) IsInSync(ref operator.Ref, uid types.UID) bool {
	return k.memory.PeekAt(ref, uid).IsInSync()
}

// IsUnaffected reports whether an event that shows an object of an upstream as it was needs no work. Not while a
// response of the API server counts: the last reconcile has decided about that, not about the object that the cache
// had.
func (k *known) IsUnaffected(ref operator.Ref) bool {
	return k.memory.Peek(ref).IsInSync()
}

// NotReady counts the upstreams that are not Ready, by reason, and all of them.
func (k *known) NotReady() (reasons map[string]int, all int) { return k.memory.NotReady() }
