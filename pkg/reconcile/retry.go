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

// readFailed is for a failed read of the upstream.
func (r *Reconciler) readFailed(ref operator.Ref, err error) time.Duration {
	f := apply.Classify(err)
	counters.Failure(r.Name, "", f.Reason)
	events.LogAt(r.Log, f)("reading the upstream failed, will retry", "upstream", ref.String(), "reason", f.Reason, "message", f.Message)
	return r.memory.Missed(ref).Fail(memory.SpacingOf(r.Pipeline.Config.Retry), f.RetryAfter, canonical.Sum{}, r.time())
}
