package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// reasonMatchConditionFailed: a match condition could not be evaluated.
const reasonMatchConditionFailed = "MatchConditionFailed"

// NoteUnknown tells that a match condition of an upstream could not be evaluated: nothing is done about it.
func (r *Reconciler) NoteUnknown(ref operator.Ref, err error) {
	counters.Failure(r.Name, "", reasonMatchConditionFailed)
	logging.Warn(r.Log, "whether it is an upstream is not known: it is left as it is", "upstream", ref.String(), "reason", reasonMatchConditionFailed,
		"message", err.Error())
	r.deselected.Forget(ref)
	r.forget(ref)
}

// IsEcho reports whether an event of an upstream is about our own write, which needs no work.
func (r *Reconciler) IsEcho(ref operator.Ref, uid types.UID, version string) bool {
	rec := r.memory.Peek(ref)
	return rec != nil && rec.IsEcho(uid, version)
}

// IsEchoOf is IsEcho for an object that an upstream owns, in the watch of downstream i, or BeforeIndex.
func (r *Reconciler) IsEchoOf(i int, ref operator.Ref, live *drift.Live) bool {
	rec := r.memory.Peek(ref)
	return rec != nil && rec.IsEchoOf(i, live)
}

// NoteDownstreamGone records that the watch of downstream i, or BeforeIndex, no longer shows an object that an upstream owns.
func (r *Reconciler) NoteDownstreamGone(i int, ref operator.Ref, uid types.UID) {
	if rec := r.memory.Peek(ref); rec != nil {
		rec.NoteUnwatched(i, uid)
	}
}

// RetryRefused forgets which values of status fields the API server refused, since the kind may have changed, and returns the
// upstreams that had some, of a namespace or of all if it is empty.
func (r *Reconciler) RetryRefused(namespace string) []operator.Ref {
	return r.unstorable.Expire(namespace)
}

// ReadersOf lists the upstreams that read an object of input i, whether it exists or not. states are the object before and after a
// change; of a list the upstreams are those whose list has it in one of them.
func (r *Reconciler) ReadersOf(i int, states []observe.Input) []operator.Ref {
	return r.readers.Of(r.Pipeline.Inputs[i], states)
}
