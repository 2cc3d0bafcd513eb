package memory

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Before is what is remembered about the deletion.before object. Losing it costs a request and nothing else: what must
// survive a restart is in the upstream's status.
type Before struct {
	// Made is the uid of the object that this process created.
	Made types.UID
	// Planned is the object to create at the place in the status: rendered again after the status was written, it may have
	// another name.
	Planned *operator.DesiredObject
	// Occupied is where a create met another owner's object.
	Occupied operator.Ref
	// IsUpstreamRead is true once the upstream was read past the cache, so that its record is not older than what was
	// done.
	IsUpstreamRead bool
	// IsGone is true once the object does not exist any more, and with it our finalizer on it, or its deletion was
	// accepted: nothing waits for its end.
	IsGone bool
	// Labels are those that it was given last because the watch selects by them. They are given once: someone may take
	// them off again.
	Labels string
	// Retry delays failed requests for the object; Failure is why the action in Failed was not carried out.
	Retry   Retry
	Failure *operator.Failure
	Failed  operator.Action
	// Reported is the last event.
	Reported string
}

// FailureOf is why the action for the object was not carried out; nil if no action is due any more, as after a lost
// response to a request that succeeded.
func (b *Before) FailureOf(o *operator.Outcome) *operator.Failure {
	if o == nil || o.Action == operator.ActionNone || o.Action != b.Failed {
		return nil
	}
	return b.Failure
}
