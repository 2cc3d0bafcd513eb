package attempt

import (
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// Next is when the next reconciliation is due without an event: failed and unfinished downstreams are retried
// with growing delay, a contested object after its backoff.
func (r *Attempt) Next(d operator.Decision) time.Duration {
	var after time.Duration
	for k, o := range d.Outcomes {
		t := r.Memory.Object(k)
		switch {
		case r.backingOff[k]:
			after = MinNonZero(after, t.Retry.Get().Wait(r.Memory.Cause(), r.Began))
		case r.Failures[k] != nil:
			t.Failure = r.Failures[k]
			after = MinNonZero(after, r.Delay(t.Retry.Edit()))
		case r.OutOfTime && o.Action != operator.ActionNone: // it was not tried
		case isUnfinished(o):
			wait := t.Retry.Get().Wait(r.Memory.Cause(), r.Began)
			if t.Failure = nil; wait == 0 {
				wait = r.Delay(t.Retry.Edit())
			}
			after = MinNonZero(after, wait)
		default:
			if (o.State == operator.StateInSync || o.State == operator.StateStale) && o.Live != nil && !o.Theirs {
				t.SetUID(o.Live.UID, o.Target) // an object of ours stays ours, whatever others add to it
			}
			t.Retry.Reset()
			t.Failure = nil
			after = MinNonZero(after, o.RequeueAfter)
		}
	}
	for _, o := range d.Leftovers {
		after = MinNonZero(after, o.RequeueAfter)
	}
	return MinNonZero(after, MinNonZero(r.NextForUnseen(), r.NextForUpstream()))
}

// NextForUpstream is Next for what is about the upstream itself, or all objects.
func (r *Attempt) NextForUpstream() (after time.Duration) {
	switch wait := r.Memory.Retry.Get().Wait(r.Memory.Cause(), r.Began); {
	case r.HasFailed:
		after = MinNonZero(after, r.Delay(r.Memory.Retry.Edit()))
	case wait > 0:
		after = MinNonZero(after, wait)
	default:
		r.Memory.Retry.Reset()
		r.Memory.SetUpstreamFailure("")
	}
	if r.StatusDelay > 0 {
		r.Memory.SetUpstreamFailure(string(operator.StateContested))
	}
	if r.OutOfTime {
		after = time.Millisecond
	}
	for _, at := range []time.Time{r.TrustedUntil, r.Memory.Notes.Get().RenderAgainAt} {
		if !at.IsZero() {
			after = MinNonZero(after, max(at.Sub(r.Began), time.Millisecond))
		}
	}
	return MinNonZero(after, r.StatusDelay)
}

// NextForUnseen is when objects are looked for again that the cache does not show: no event reports their end.
func (r *Attempt) NextForUnseen() time.Duration {
	exists := func(own operator.Owned) bool { return !r.Memory.IsNotOurs(own.Live.UID, r.Began) }
	if len(r.Unread) == 0 && !slices.ContainsFunc(r.Unseen, exists) {
		r.Memory.Notes.Set(false, func(n *memory.Notes) { n.Waiting = memory.Retry{} })
		return 0
	}
	waiting := &r.Memory.Notes.Edit().Waiting
	if wait := waiting.Wait(r.Memory.Cause(), r.Began); wait > 0 {
		return wait
	}
	return r.Delay(waiting)
}

// isUnfinished reports whether an outcome left something undone that no event may announce: a conflict with an object
// that the watch does not see, a terminating object.
func isUnfinished(o operator.Outcome) bool {
	return o.State == operator.StateConflict || o.State == operator.StateWaiting || o.Action != operator.ActionNone
}

// MinNonZero is the earlier of two delays, where zero is none.
func MinNonZero(a, b time.Duration) time.Duration {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}
