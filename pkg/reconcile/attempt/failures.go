package attempt

import (
	"time"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// FailuresByDownstream has the first failure of each downstream, by its index.
func (r *Attempt) FailuresByDownstream() map[int]*operator.Failure {
	failed := make(map[int]*operator.Failure, len(r.Failures)+1)
	for k, o := range r.Memory.Desired().Objects {
		if f := r.Failures[k]; f != nil && failed[o.Downstream] == nil {
			failed[o.Downstream] = f
		}
	}
	return failed
}

// RequestFailed records a failed request for the upstream itself: nothing else is done in this reconciliation.
func (r *Attempt) RequestFailed(doing string, err error) {
	f := r.ReportFailure(doing, err)
	for k := range r.Memory.Desired().Objects {
		if r.Failures[k] == nil {
			r.Failures[k] = &operator.Failure{Reason: f.Reason, Message: f.Message}
		}
	}
}

// failWith is fail for a failure that is classified.
func (r *Attempt) failWith(o operator.Outcome, f apply.Failure) {
	name := r.Pipeline.Downstreams[o.Downstream].Name
	r.Failures[o.Object] = &operator.Failure{Reason: f.Reason, Message: f.Message}
	r.Notify(func(to Observer) { to.Failed(o.Object, *r.Failures[o.Object]) })
	if f.Reason == apply.ReasonSchemaMismatch && r.Pipeline.Downstreams[o.Downstream].Kind.IsCustom() {
		r.Host.RecheckKinds()
	}
	r.MinRetry = max(r.MinRetry, f.RetryAfter)
	counters.Failure(r.Name, name, f.Reason)
	r.Reporter().Failed(name, o, f)
}

// RetryLater records that work on the upstream itself failed, and returns its delay.
func (r *Attempt) RetryLater() time.Duration { return r.Delay(r.Memory.Retry.Edit()) }

// Delay records a failure of what retry is about, and returns after how long to try it again.
func (r *Attempt) Delay(retry *memory.Retry) time.Duration {
	return retry.Fail(memory.SpacingOf(r.Pipeline.Config.Retry), r.MinRetry, r.Memory.Cause(), r.Began)
}
