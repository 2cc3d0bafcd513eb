package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/status"
)

// finish reports what came of a reconciliation and returns after how long to look again.
func (l *reconciliation) finish(ctx context.Context, d pipeline.Decision) time.Duration {
	if !l.selected {
		return l.finishUnselected(ctx, d)
	}
	results := l.results(d)
	l.countStates(l.record, results)
	report := l.Pipeline.Report(ctx, l.upstream, l.inputsRead(), l.record.desired, results, metav1.NewTime(l.now))
	report, told := l.writeReport(ctx, report, func() drift.Sum { return l.causeOf(results) })
	l.eventOutcomes(d, told)
	after := l.nextReconciliation(d)
	l.countVerdict(l.record, report.Verdict)
	return after
}

// finishUnselected is finish for an upstream that is no longer selected. Once that is told, it is left alone.
func (l *reconciliation) finishUnselected(ctx context.Context, d pipeline.Decision) time.Duration {
	l.writeUnselected(ctx, d)
	if len(l.failures) > 0 || l.upstreamFailed {
		return l.retryLater()
	}
	if len(d.Leftovers) == 0 {
		l.deselected.forget(l.ref)
	}
	after := l.spaced
	for _, o := range slices.Concat(d.Outcomes, d.Leftovers) {
		after = sooner(after, o.RequeueAfter)
	}
	if after == 0 {
		l.forget(l.ref)
	}
	return after
}

func (l *reconciliation) writeUnselected(ctx context.Context, d pipeline.Decision) {
	report := l.Pipeline.ReportUnselected(l.upstream, d, l.failures, metav1.NewTime(l.now))
	l.writeReport(ctx, report, func() drift.Sum { return l.causeOf(nil) })
}

// results pairs every outcome with the object of ours that stands for it: the target, or what it is to replace.
func (l *reconciliation) results(d pipeline.Decision) []pipeline.Result {
	results, recorded := make([]pipeline.Result, len(d.Outcomes)), l.recorded()
	for i, o := range d.Outcomes {
		results[i] = pipeline.Result{Outcome: o, Live: o.Live, Failure: l.failures[i]}
		if o.Theirs || o.State == pipeline.StateConflict {
			results[i].Live = nil
		}
		rec := recordedAs(recorded, l.Pipeline.Downstreams[i].Name)
		if results[i].Live != nil {
			results[i].Baseline = l.baseline(i, results[i].Live, rec)
		}
		if rec != nil && rec.UID != "" {
			replaced := o.Live != nil && o.Live.UID != rec.UID && o.Live.Namespace == rec.Namespace && o.Live.Name == rec.ObjectName
			results[i].Unseen = !replaced && !l.record.knownGone(rec.UID, l.now)
		}
	}
	for _, o := range d.Leftovers {
		if r := &results[o.Downstream]; r.Live == nil && o.Action == pipeline.ActionNone && !o.Live.Deleting {
			r.Live = o.Live
		}
	}
	return results
}

// unfinished tells whether an outcome left something undone that no event may announce: a conflict with an object that
// the watch does not see, an object that is going.
func unfinished(o pipeline.Outcome) bool {
	return o.State == pipeline.StateConflict || o.State == pipeline.StateWaiting || o.Action != pipeline.ActionNone
}

// nextReconciliation is when the next reconciliation is due without an event: what failed or is unfinished is tried again with growing
// delay, a contested object after its back-off.
func (l *reconciliation) nextReconciliation(d pipeline.Decision) time.Duration {
	var after time.Duration
	for i, o := range d.Outcomes {
		t := &l.record.targets[i]
		switch {
		case l.held[i]:
			after = sooner(after, t.retry.wait(l.record.asked, l.now))
		case l.failures[i] != nil:
			t.failure = l.failures[i]
			after = sooner(after, l.delay(&t.retry))
		case unfinished(o), !l.record.slowUntil.IsZero():
			wait := t.retry.wait(l.record.asked, l.now)
			if t.failure = nil; wait == 0 {
				wait = l.delay(&t.retry)
			}
			after = sooner(after, wait)
		default:
			if o.State == pipeline.StateInSync && o.Live != nil && !o.Theirs {
				t.knows(o.Live.UID, o.Target) // what was ours once stays ours, whatever others add to it
			}
			t.retry, t.failure = retryState{}, nil
			after = sooner(after, o.RequeueAfter)
		}
	}
	switch wait := l.record.retry.wait(l.record.asked, l.now); {
	case l.upstreamFailed:
		after = sooner(after, l.delay(&l.record.retry))
	case wait > 0:
		after = sooner(after, wait)
	default:
		l.record.retry.reset()
		l.record.unable = ""
	}
	if l.spaced > 0 {
		l.record.unable = string(pipeline.StateContested)
	}
	for _, o := range d.Leftovers {
		after = sooner(after, o.RequeueAfter)
	}
	if !l.trustedUntil.IsZero() {
		after = sooner(after, l.trustedUntil.Sub(l.now))
	}
	return sooner(after, l.spaced)
}

// retryLater notes that work on the upstream itself failed and returns how long it waits.
func (l *reconciliation) retryLater() time.Duration { return l.delay(&l.record.retry) }

func (l *reconciliation) delay(r *retryState) time.Duration {
	retry := l.Pipeline.Config.Retry
	return r.fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), l.atLeast, l.record.asked, l.now)
}

// failUpstream notes a request about the upstream itself that failed: nothing further is done in this reconciliation.
func (l *reconciliation) failUpstream(doing string, err error) {
	f := l.reportFailure(doing, err)
	for i := range l.Pipeline.Downstreams {
		if l.failures[i] == nil {
			l.failures[i] = &pipeline.Failure{Reason: f.Reason, Message: f.Message}
		}
	}
}

// reportFailure counts and logs a request about the upstream itself that failed, and heeds how long it asks to wait.
func (l *reconciliation) reportFailure(doing string, err error) apply.Failure {
	f := l.classifyUpstream(err)
	if f.Reason == apply.ReasonSchemaMismatch {
		l.Host.RecheckKinds()
	}
	l.atLeast = max(l.atLeast, f.RetryAfter)
	l.record.unable = f.Reason
	CountFailure(l.Name, "", f.Reason)
	l.Log.Info("a request about the upstream failed and is tried again", "upstream", l.ref.String(), "doing", doing, "reason", f.Reason, "message", f.Message)
	return f
}

// classify is apply.Classify of a request about an object of d, without values where they may be a Secret's.
func classify(d *pipeline.Downstream, err error) apply.Failure {
	return classifyShown(err, d.Words)
}

// classifyUpstream is classify for a request about the upstream.
func (l *reconciliation) classifyUpstream(err error) apply.Failure {
	return classifyShown(err, l.Pipeline.UpstreamWords)
}

func classifyShown(err error, words redact.Words) apply.Failure {
	switch {
	case errors.Is(err, kinds.ErrServedAgain):
		return apply.Failure{Reason: string(pipeline.StateWaiting), Message: err.Error()}
	case errors.Is(err, kinds.ErrUnknown):
		return apply.Failure{Reason: apply.ReasonKindNotServed, Message: err.Error()}
	}
	return apply.ClassifyShown(err, words)
}

// writeReport writes the upstream's status where it says something new. It returns the report without the values that cannot
// be stored, and whether the status said all of it before. cause is the digest of what it follows from that this writing does
// not change itself.
func (l *reconciliation) writeReport(ctx context.Context, report pipeline.Report, cause func() drift.Sum) (pipeline.Report, bool) {
	l.logDropped(report)
	report = l.withoutRefused(report)
	if !l.hasNews(report) || l.record.retry.wait(l.record.asked, l.now) > 0 {
		return report, report.Status != nil && !report.Changed
	}
	if l.statusMustWait(ctx) {
		return report, false
	}
	because, saying := cause(), l.saying(report.Status)
	if l.spaced = l.record.statusContest.wait(because, saying, l.spacing(), l.now); l.spaced > 0 {
		l.contestedBy = l.statusContenders(report, saying)
		return report, false
	}
	l.findStatusWriters(ctx, saying)
	report, resp, err := l.writeStorable(ctx, report)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		l.record.forgetObject(l.upstream.GetUID(), l.now) // its watch is behind
		return report, false
	case err != nil:
		l.reportFailure("writing the status", err)
		l.upstreamFailed = true
		return report, false
	case resp == nil:
		return report, true
	}
	l.record.statusContest.write(because, l.saying(report.Status), l.spacing(), l.now)
	// Somebody else's change may have come back with it: then the news of it must be looked at.
	l.upstream = withoutManagedFields(resp)
	complete := l.question(l.Pipeline.ReadsStatus()) == l.record.digest
	if complete {
		l.record.version = resp.GetResourceVersion()
	}
	l.record.wrote(resp, complete)
	return report, false
}

// hasNews tells whether there is anything to write.
func (l *reconciliation) hasNews(report pipeline.Report) bool {
	return report.Status != nil && (report.Changed || l.previousInStatus())
}

// statusMustWait reports whether the status must not be written yet, because the cached upstream is older than what another
// process recorded in it.
func (l *reconciliation) statusMustWait(ctx context.Context) bool {
	after, err := l.ensureLatest(ctx, &pipeline.Decision{})
	if err != nil {
		l.reportFailure("reading the upstream", err)
		l.upstreamFailed = true
		return true
	}
	l.spaced = after
	return after > 0
}

// replaceStatus writes the status after what it cannot hold any more is out of it.
func (l *reconciliation) replaceStatus(ctx context.Context, report pipeline.Report) (*unstructured.Unstructured, error) {
	if err := l.removeMisfits(ctx, report.Misfits); err != nil {
		return nil, err
	}
	return l.writeStatus(ctx, report.Status)
}

// removeMisfits takes values out of the status that its schema cannot hold any more.
func (l *reconciliation) removeMisfits(ctx context.Context, misfits []fieldpath.Path) error {
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
	up, err := l.client.PatchStatus(ctx, l.UpstreamTarget(l.ref), l.Pipeline.Upstream.HasStatus, l.upstream.GetResourceVersion(), l.upstream.GetUID(), content)
	if err == nil {
		l.upstream = withoutManagedFields(up)
	}
	return err
}

// writeStatus applies our part of the status where conditions are a keyed list; else it merges, with the version that
// was read, so that conditions of others that came meanwhile are not lost.
func (l *reconciliation) writeStatus(ctx context.Context, want map[string]any) (*unstructured.Unstructured, error) {
	t, up := l.UpstreamTarget(l.ref), l.Pipeline.Upstream
	if l.Pipeline.Storable.Conditions == status.ConditionsKeyed {
		own := l.Pipeline.OwnConditions(want)
		resp, err := l.client.ApplyStatus(ctx, t, l.upstream.GetAPIVersion(), l.upstream.GetKind(), up.HasStatus, l.upstream.GetUID(), own)
		if err != nil {
			return nil, err
		}
		return l.withdrawStatus(ctx, t, resp)
	}
	return l.client.PatchStatus(ctx, t, up.HasStatus, l.upstream.GetResourceVersion(), l.upstream.GetUID(), want)
}

func withoutManagedFields(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetManagedFields(nil)
	return u
}
