package reconcile

import (
	"time"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// minNonZero is the earlier of two delays, where zero is none.
func minNonZero(a, b time.Duration) time.Duration {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// readFailed is for a failed read of the upstream.
func (r *Reconciler) readFailed(ref operator.Ref, err error) time.Duration {
	f := apply.Classify(err)
	counters.Failure(r.Name, "", f.Reason)
	events.LogAt(r.Log, f)("reading the upstream failed, will retry", "upstream", ref.String(), "reason", f.Reason, "message", f.Message)
	return r.memory.Missed(ref).Fail(r.spacing(), f.RetryAfter, canonical.Sum{}, r.time())
}

func (r *Reconciler) spacing() memory.Spacing { return memory.SpacingOf(r.Pipeline.Config.Retry) }

// setDesired remembers a desired state. What has failed is ordered like its objects.
func (r *reconciliation) setDesired(w *operator.Desired, digest canonical.Sum) {
	from := r.Memory.SetDesired(w, digest)
	if from == nil || len(r.failures) == 0 {
		return
	}
	failures, backingOff := r.failures, r.backingOff
	r.failures, r.backingOff = map[int]*operator.Failure{}, map[int]bool{}
	for k, old := range from {
		if failures[old] != nil {
			r.failures[k], r.backingOff[k] = failures[old], backingOff[old]
		}
	}
}
