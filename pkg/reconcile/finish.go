package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// finish reports the result of a reconciliation and returns after how long to reconcile again.
func (r *reconciliation) finish(ctx context.Context, d operator.Decision) time.Duration {
	if !r.Selected {
		return r.finishUnselected(ctx, d)
	}
	results := r.results(d)
	r.tally().States(r.Memory, statesOf(results))
	report := r.Pipeline.Report(ctx, r.Upstream, r.InputsRead(), r.Memory.Desired(), results, r.leftToReport(d), r.Unrecorded(), metav1.NewTime(r.Began))
	report, told := r.writeReport(ctx, report, func() canonical.Sum { return r.causeOf(results, d.Leftovers) })
	r.reporter().Outcomes(r.Memory, d, r.failures, r.contestedBy, told)
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
	if len(r.failures) > 0 || r.upstreamFailed {
		return r.retryLater()
	}
	if len(d.Leftovers) == 0 {
		r.deselected.Forget(r.Ref)
	}
	after := minNonZero(r.statusDelay, r.nextForUnseen())
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
	r.writeReport(ctx, report, func() canonical.Sum { return r.causeOf(nil, d.Leftovers) })
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
	case r.upstreamFailed:
		after = minNonZero(after, r.delay(r.Memory.Retry.Edit()))
	case wait > 0:
		after = minNonZero(after, wait)
	default:
		r.Memory.Retry.Reset()
		r.Memory.SetUpstreamFailure("")
	}
	if r.statusDelay > 0 {
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
	return minNonZero(after, r.statusDelay)
}

// retryLater records that work on the upstream itself failed, and returns its delay.
func (r *reconciliation) retryLater() time.Duration { return r.delay(r.Memory.Retry.Edit()) }

func (r *reconciliation) delay(retry *memory.Retry) time.Duration {
	return retry.Fail(r.spacing(), r.minRetry, r.Memory.Cause(), r.Began)
}

// failUpstream records a failed request for the upstream itself: nothing else is done in this reconciliation.
func (r *reconciliation) failUpstream(doing string, err error) {
	f := r.reportFailure(doing, err)
	for k := range r.Memory.Desired().Objects {
		if r.failures[k] == nil {
			r.failures[k] = &operator.Failure{Reason: f.Reason, Message: f.Message}
		}
	}
}

// reportFailure counts and logs a failed request for the upstream itself, and takes over its Retry-After.
func (r *reconciliation) reportFailure(doing string, err error) apply.Failure {
	f := act.Classify(err, r.Pipeline.UpstreamWords)
	if f.Reason == apply.ReasonSchemaMismatch {
		r.Host.RecheckKinds()
	}
	r.minRetry = max(r.minRetry, f.RetryAfter)
	r.Memory.SetUpstreamFailure(f.Reason)
	counters.Failure(r.Name, "", f.Reason)
	events.LogAt(r.Log, f)("request for the upstream failed, will retry", "upstream", r.Ref.String(), "doing", doing, "reason", f.Reason, "message", f.Message)
	return f
}

// failWith is fail for a failure that is classified.
func (r *reconciliation) failWith(o operator.Outcome, f apply.Failure) {
	name := r.Pipeline.Downstreams[o.Downstream].Name
	r.failures[o.Object] = &operator.Failure{Reason: f.Reason, Message: f.Message}
	r.notifyObserver(func(to Observer) { to.Failed(o.Object, *r.failures[o.Object]) })
	if f.Reason == apply.ReasonSchemaMismatch && r.Pipeline.Downstreams[o.Downstream].Kind.IsCustom() {
		r.Host.RecheckKinds()
	}
	r.minRetry = max(r.minRetry, f.RetryAfter)
	counters.Failure(r.Name, name, f.Reason)
	r.reporter().Failed(name, o, f)
}

// writeReport writes the upstream's status if it changes. It returns the report without the values that cannot be stored, and
// whether the status contained all of it before. cause is the digest of what it follows from, without what this write itself
// changes.
func (r *reconciliation) writeReport(ctx context.Context, report report.Report, cause func() canonical.Sum) (report.Report, bool) {
	r.logDropped(report)
	report = r.withoutRefused(report)
	r.notifyObserver(func(to Observer) { to.Reported(report) })
	if r.upstreamGone || !r.needsStatusWrite(report) || r.Memory.Retry.Get().Wait(r.Memory.Cause(), r.Began) > 0 {
		return report, report.Status != nil && !report.Changed
	}
	if r.statusMustWait(ctx) {
		return report, false
	}
	because, saying := cause(), statusDigest(r.Pipeline.Settings, report.Status)
	if r.statusDelay = r.Memory.Contests.Get().Status.Wait(because, saying, r.spacing(), r.Began); r.statusDelay > 0 {
		r.contestedBy = r.statusContenders(report, saying)
		return report, false
	}
	r.findStatusWriters(ctx, saying)
	report, resp, err := r.writeStorable(ctx, report)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		r.Memory.NoteGone(r.Upstream.GetUID(), r.Began) // its watch is behind
		return report, false
	case err != nil:
		r.reportFailure("writing the status", err)
		r.upstreamFailed = true
		return report, false
	case resp == nil:
		return report, true
	}
	r.Log.V(1).Info("status written", "upstream", r.Ref.String(), "reason", report.Verdict.Reason)
	r.notifyObserver(func(to Observer) { to.Reported(report) })
	r.Memory.Contests.Edit().Status.Write(because, statusDigest(r.Pipeline.Settings, report.Status), r.spacing(), r.Began)
	// The response may contain somebody else's change: then the event about it must be handled.
	r.Upstream = withoutManagedFields(resp)
	complete := r.Memory.IsRenderedFrom(r.ReadableDigest(r.Pipeline.ReadsStatus))
	if complete {
		r.Memory.SetRendered(resp.GetResourceVersion(), r.Memory.Inputs().Digest)
	}
	r.Memory.WroteUpstream(resp, complete)
	return report, false
}

// needsStatusWrite reports whether there is anything to write.
func (r *reconciliation) needsStatusWrite(report report.Report) bool {
	return report.Status != nil && (report.Changed || r.previousInStatus())
}

// statusMustWait reports whether the status must not be written yet, because the cached upstream is older than what another
// process recorded in it.
func (r *reconciliation) statusMustWait(ctx context.Context) bool {
	after, err := r.ensureLatest(ctx, &operator.Decision{})
	if err != nil {
		r.reportFailure("reading the upstream", err)
		r.upstreamFailed = true
		return true
	}
	r.statusDelay = after
	return after > 0
}

// replaceStatus writes the status after removing what its schema cannot store any more.
func (r *reconciliation) replaceStatus(ctx context.Context, report report.Report) (*unstructured.Unstructured, error) {
	if err := r.removeMisfits(ctx, report.Misfits); err != nil {
		return nil, err
	}
	return r.writeStatus(ctx, report.Status)
}

// removeMisfits removes values from the status that its schema cannot store any more.
func (r *reconciliation) removeMisfits(ctx context.Context, misfits []fieldpath.Path) error {
	if len(misfits) == 0 {
		return nil
	}
	nulls := map[string]any{}
	for _, p := range misfits {
		if err := fieldpath.Set(nulls, p, nil); err != nil {
			return err
		}
	}
	content, _ := nulls["status"].(map[string]any)
	up, err := r.API.PatchStatus(ctx, r.UpstreamTarget(r.Ref), r.Pipeline.Upstream.HasStatus, r.Upstream.GetResourceVersion(), r.Upstream.GetUID(), content)
	if err == nil {
		r.Upstream = withoutManagedFields(up)
	}
	return err
}

// writeStatus applies our part of the status if conditions are a keyed list; else it sends a merge patch with the
// resourceVersion that was read, so that conditions of others are not lost.
func (r *reconciliation) writeStatus(ctx context.Context, want map[string]any) (*unstructured.Unstructured, error) {
	t, up := r.UpstreamTarget(r.Ref), r.Pipeline.Upstream
	if r.Pipeline.Storable.Conditions == status.ConditionsKeyed {
		own := report.OwnConditions(r.Pipeline.Settings, want)
		resp, err := r.API.ApplyStatus(ctx, t, r.Upstream.GetAPIVersion(), r.Upstream.GetKind(), up.HasStatus, r.Upstream.GetUID(), own)
		if err != nil {
			return nil, err
		}
		return r.withdrawStatus(ctx, t, resp)
	}
	return r.API.PatchStatus(ctx, t, up.HasStatus, r.Upstream.GetResourceVersion(), r.Upstream.GetUID(), want)
}

func withoutManagedFields(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetManagedFields(nil)
	return u
}

// statesOf are the states in which results are counted.
func statesOf(results []operator.Result) []memory.State {
	states := make([]memory.State, len(results))
	for i, result := range results {
		states[i] = memory.State{Downstream: result.Outcome.Downstream, State: result.Outcome.State}
	}
	return states
}

// logDropped logs once which status fields the kind cannot store.
func (r *reconciliation) logDropped(report report.Report) {
	if len(report.Dropped) == 0 {
		return
	}
	r.droppedReported.Do(func() {
		logging.Warn(r.Log, "the upstream's schema cannot store all of its status; corollary check prints the lines to add",
			"kind", r.Pipeline.Upstream.GVK.String(), "fields", strings.Join(report.Dropped, ", "))
	})
}

// reporter reports what happens to the upstream.
func (r *reconciliation) reporter() events.Reporter {
	return events.Reporter{Log: r.Log, Recorder: r.Recorder, Settings: r.Pipeline.Settings, Operator: r.Name, Ref: r.Ref, Upstream: r.Upstream}
}
