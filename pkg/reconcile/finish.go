package reconcile

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// finish reports the result of a reconciliation and returns after how long to reconcile again.
func (r *reconciliation) finish(ctx context.Context, d operator.Decision) time.Duration {
	if !r.Selected {
		return r.finishUnselected(ctx, d)
	}
	results := r.results(d)
	r.tally().States(r.Memory, statesOf(results))
	report := r.Pipeline.Report(ctx, r.Upstream, r.InputsRead(), r.Memory.Desired(), results, r.leftToReport(d), r.Unrecorded(), metav1.NewTime(r.Began))
	report, told := r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOf(results, d.Leftovers) })
	r.reporter().Outcomes(r.Memory, d, r.failures, r.ContestedBy, told)
	r.reportRow(report.Row)
	after := r.nextReconciliation(d)
	switch {
	case report.TookTooLong || r.ReadsSlowInputs():
		after = minNonZero(after, r.noteSlow("the status"))
	case !r.Memory.Desired().TookTooLong():
		r.Memory.Notes.Set(false, func(n *memory.Notes) { n.Slow = memory.Retry{} })
	}
	r.tally().Verdict(r.Memory, report.Verdict)
	r.Memory.Tidy(r.Began)
	r.noteInSync(ctx, d, report.Verdict, after)
	return after
}

// finishUnselected is finish for an upstream that is no longer selected. Once that is reported, it is left alone.
func (r *reconciliation) finishUnselected(ctx context.Context, d operator.Decision) time.Duration {
	r.writeUnselected(ctx, d)
	if len(r.failures) > 0 || r.HasFailed {
		return r.retryLater()
	}
	if len(d.Leftovers) == 0 {
		r.deselected.Forget(r.Ref)
	}
	after := minNonZero(r.StatusDelay, r.nextForUnseen())
	for _, o := range slices.Concat(d.Outcomes, d.Leftovers) {
		after = minNonZero(after, o.RequeueAfter)
	}
	if r.outOfTime {
		return time.Millisecond
	}
	if after == 0 && len(d.Leftovers) == 0 {
		r.forget(r.Ref)
	}
	return after
}

func (r *reconciliation) writeUnselected(ctx context.Context, d operator.Decision) {
	report := report.Unselected(r.Pipeline.Settings, r.Upstream, r.Pipeline.Match(r.Upstream).Unmet, d, r.failuresByDownstream(), metav1.NewTime(r.Began))
	r.WriteReport(ctx, report, func() canonical.Sum { return r.CauseOf(nil, d.Leftovers) })
}

// results pairs every outcome with the object of ours that belongs to it: the target, or the object that it is to replace.
func (r *reconciliation) results(d operator.Decision) []operator.Result {
	results, recorded := make([]operator.Result, len(d.Outcomes)), r.Recorded()
	for k, o := range d.Outcomes {
		results[k] = operator.Result{Outcome: o, Live: o.Live, Failure: r.failures[k]}
		if o.Theirs || o.State == operator.StateConflict {
			results[k].Live = nil
		}
		rec := r.RecordedAs(recorded, k)
		if results[k].Live != nil {
			results[k].Baseline = r.BaselineOf(k, results[k].Live, rec)
			results[k].Unverified, _ = r.VerifiedAs(k, results[k].Live, rec)
		}
		if rec != nil && rec.UID != "" {
			replaced := o.Live != nil && o.Live.UID != rec.UID && o.Live.Namespace == rec.Namespace && o.Live.Name == rec.ObjectName
			results[k].Unseen = !replaced && !r.Memory.IsNotOurs(rec.UID, r.Began)
		}
	}
	for _, o := range d.Leftovers {
		if result := &results[o.Object]; !r.DownstreamOf(o.Object).Several() && result.Live == nil && o.Action == operator.ActionNone && !o.Live.Deleting {
			result.Live, result.Guessed = o.Live, o.Guessed
		}
	}
	return results
}

// failuresByDownstream has the first failure of each downstream, by its index.
func (r *reconciliation) failuresByDownstream() map[int]*operator.Failure {
	failed := make(map[int]*operator.Failure, len(r.failures)+1)
	for k, o := range r.Memory.Desired().Objects {
		if f := r.failures[k]; f != nil && failed[o.Downstream] == nil {
			failed[o.Downstream] = f
		}
	}
	return failed
}

// failureOf is the failure of what is done for a downstream and no single object of the desired state.
func (r *reconciliation) failureOf(downstream int) *operator.Failure {
	return r.failures[r.Memory.Desired().First(downstream)]
}

// isUnfinished reports whether an outcome left something undone that no event may announce: a conflict with an object that the
// watch does not see, a terminating object.
func isUnfinished(o operator.Outcome) bool {
	return o.State == operator.StateConflict || o.State == operator.StateWaiting || o.Action != operator.ActionNone
}

// nextReconciliation is when the next reconciliation is due without an event: failed and unfinished downstreams are retried
// with growing delay, a contested object after its backoff.
func (r *reconciliation) nextReconciliation(d operator.Decision) time.Duration {
	var after time.Duration
	for k, o := range d.Outcomes {
		t := r.Memory.Object(k)
		switch {
		case r.backingOff[k]:
			after = minNonZero(after, t.Retry.Get().Wait(r.Memory.Cause(), r.Began))
		case r.failures[k] != nil:
			t.Failure = r.failures[k]
			after = minNonZero(after, r.delay(t.Retry.Edit()))
		case r.outOfTime && o.Action != operator.ActionNone: // it was not tried
		case isUnfinished(o):
			wait := t.Retry.Get().Wait(r.Memory.Cause(), r.Began)
			if t.Failure = nil; wait == 0 {
				wait = r.delay(t.Retry.Edit())
			}
			after = minNonZero(after, wait)
		default:
			if (o.State == operator.StateInSync || o.State == operator.StateStale) && o.Live != nil && !o.Theirs {
				t.SetUID(o.Live.UID, o.Target) // an object of ours stays ours, whatever others add to it
			}
			t.Retry.Reset()
			t.Failure = nil
			after = minNonZero(after, o.RequeueAfter)
		}
	}
	for _, o := range d.Leftovers {
		after = minNonZero(after, o.RequeueAfter)
	}
	return minNonZero(after, minNonZero(r.nextForUnseen(), r.nextForUpstream()))
}

// nextForUpstream is nextReconciliation for what is about the upstream itself, or all objects.
func (r *reconciliation) nextForUpstream() (after time.Duration) {
	switch wait := r.Memory.Retry.Get().Wait(r.Memory.Cause(), r.Began); {
	case r.HasFailed:
		after = minNonZero(after, r.delay(r.Memory.Retry.Edit()))
	case wait > 0:
		after = minNonZero(after, wait)
	default:
		r.Memory.Retry.Reset()
		r.Memory.SetUpstreamFailure("")
	}
	if r.StatusDelay > 0 {
		r.Memory.SetUpstreamFailure(string(operator.StateContested))
	}
	if r.outOfTime {
		after = time.Millisecond
	}
	for _, at := range []time.Time{r.TrustedUntil, r.Memory.Notes.Get().RenderAgainAt} {
		if !at.IsZero() {
			after = minNonZero(after, max(at.Sub(r.Began), time.Millisecond))
		}
	}
	return minNonZero(after, r.StatusDelay)
}

// retryLater records that work on the upstream itself failed, and returns its delay.
func (r *reconciliation) retryLater() time.Duration { return r.delay(r.Memory.Retry.Edit()) }

func (r *reconciliation) delay(retry *memory.Retry) time.Duration {
	return retry.Fail(r.spacing(), r.MinRetry, r.Memory.Cause(), r.Began)
}

// failUpstream records a failed request for the upstream itself: nothing else is done in this reconciliation.
func (r *reconciliation) failUpstream(doing string, err error) {
	f := r.ReportFailure(doing, err)
	for k := range r.Memory.Desired().Objects {
		if r.failures[k] == nil {
			r.failures[k] = &operator.Failure{Reason: f.Reason, Message: f.Message}
		}
	}
}

// failWith is fail for a failure that is classified.
func (r *reconciliation) failWith(o operator.Outcome, f apply.Failure) {
	name := r.Pipeline.Downstreams[o.Downstream].Name
	r.failures[o.Object] = &operator.Failure{Reason: f.Reason, Message: f.Message}
	r.notifyObserver(func(to Observer) { to.Failed(o.Object, *r.failures[o.Object]) })
	if f.Reason == apply.ReasonSchemaMismatch && r.Pipeline.Downstreams[o.Downstream].Kind.IsCustom() {
		r.Host.RecheckKinds()
	}
	r.MinRetry = max(r.MinRetry, f.RetryAfter)
	counters.Failure(r.Name, name, f.Reason)
	r.reporter().Failed(name, o, f)
}

// statesOf are the states in which results are counted.
func statesOf(results []operator.Result) []memory.State {
	states := make([]memory.State, len(results))
	for i, result := range results {
		states[i] = memory.State{Downstream: result.Outcome.Downstream, State: result.Outcome.State}
	}
	return states
}

// reporter reports what happens to the upstream.
func (r *reconciliation) reporter() events.Reporter {
	return events.Reporter{Operator: r.Operator, Settings: r.Pipeline.Settings, Ref: r.Ref, Upstream: r.Upstream}
}
