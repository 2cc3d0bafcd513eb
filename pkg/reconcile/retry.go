package reconcile

import (
	"math/rand/v2"
	"time"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
)

// retryState delays attempts that failed, for one downstream or for the upstream itself: they wait and delay nothing else, and
// a changed upstream does not wait.
type retryState struct {
	failures int
	until    time.Time
	digest   canonical.Sum
}

// fail records a failed attempt for an upstream with that digest and returns its delay: growing, with jitter, so that many that
// failed together are not retried together.
func (r *retryState) fail(minimum, maximum time.Duration, atLeast time.Duration, digest canonical.Sum, now time.Time) time.Duration {
	delay := max(atLeast, decide.Backoff(minimum, maximum, r.failures))
	delay += rand.N(delay/4 + 1)
	r.failures++
	r.until, r.digest = now.Add(delay), digest
	return delay
}

// wait returns how long an upstream with that digest still has to wait; zero if it may be tried now.
func (r retryState) wait(digest canonical.Sum, now time.Time) time.Duration {
	if r.failures == 0 || r.digest != digest || !now.Before(r.until) {
		return 0
	}
	return r.until.Sub(now)
}

// minNonZero is the earlier of two delays, where zero is none.
func minNonZero(a, b time.Duration) time.Duration {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// mayHaveSucceeded reports whether a failed request may have been carried out nevertheless.
func mayHaveSucceeded(err error) bool {
	switch apply.Classify(err).Reason {
	case apply.ReasonUnavailable, apply.ReasonInternalError, apply.ReasonCanceled, apply.ReasonUnknown:
		return true
	}
	return false
}

// readFailed is for a failed read of the upstream.
func (r *Reconciler) readFailed(ref operator.Ref, err error) time.Duration {
	f := apply.Classify(err)
	counters.Failure(r.Name, "", f.Reason)
	r.logAt(f)("reading the upstream failed, will retry", "upstream", ref.String(), "reason", f.Reason, "message", f.Message)
	retry := r.Pipeline.Config.Retry
	return r.memory.missed(ref).fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), f.RetryAfter, canonical.Sum{}, r.time())
}
