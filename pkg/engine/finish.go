package engine

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// finish reports what came of a look and returns after how long to look again.
func (l *look) finish(ctx context.Context, d pipeline.Decision) time.Duration {
	defer l.record.wish.Forget()
	if !l.selected {
		if len(l.failures) == 0 {
			l.forget(l.ref)
			return 0
		}
		return l.retryLater()
	}
	results := l.results(d)
	l.countStates(l.record, results)
	report := l.pipeline.Report(ctx, l.upstream, l.inputsRead(), l.record.wish, results, metav1.NewTime(l.now))
	told := l.writeReport(ctx, report)
	l.eventOutcomes(d, told)
	after := l.lookAgain(d)
	l.countVerdict(l.record, report.Verdict)
	return after
}

// results pairs every outcome with the object of ours that stands for it: the target, or what it is to replace.
func (l *look) results(d pipeline.Decision) []pipeline.Result {
	results, recorded := make([]pipeline.Result, len(d.Outcomes)), l.recorded()
	for i, o := range d.Outcomes {
		results[i] = pipeline.Result{Outcome: o, Live: o.Live, Failure: l.failures[i]}
		if o.Theirs || o.State == pipeline.StateConflict {
			results[i].Live = nil
		}
		if rec := recordedAs(recorded, l.pipeline.Downstreams[i].Name); rec != nil && rec.UID != "" {
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

// lookAgain is when the next look is due without an event: what failed or is unfinished is tried again with growing
// delay, a contested object after its back-off.
func (l *look) lookAgain(d pipeline.Decision) time.Duration {
	var after time.Duration
	for i, o := range d.Outcomes {
		t := &l.record.targets[i]
		switch {
		case l.held[i]:
			after = sooner(after, t.retry.wait(l.record.asked, l.now))
		case l.failures[i] != nil:
			t.failure = l.failures[i]
			after = sooner(after, l.delay(&t.retry))
		case unfinished(o):
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
		l.record.retry.succeed()
		l.record.unable = ""
	}
	if !l.believed.IsZero() {
		after = sooner(after, l.believed.Sub(l.now))
	}
	return sooner(after, l.spaced)
}

// retryLater notes that work on the upstream itself failed and returns how long it waits.
func (l *look) retryLater() time.Duration { return l.delay(&l.record.retry) }

func (l *look) delay(r *retryState) time.Duration {
	retry := l.pipeline.Config.Retry
	return r.fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), l.atLeast, l.record.asked, l.now)
}

// calmAfter is how long nobody must have undone a repair for the count of undone ones to start over.
func (s *session) calmAfter() time.Duration {
	return 2 * time.Duration(s.pipeline.Config.Retry.MaxDelay)
}

// failUpstream notes a request about the upstream itself that failed: nothing further is done in this look.
func (l *look) failUpstream(doing string, err error) {
	f := l.tellFailure(doing, err)
	for i := range l.pipeline.Downstreams {
		if l.failures[i] == nil {
			l.failures[i] = &pipeline.Failure{Reason: f.Reason, Message: f.Message}
		}
	}
}

// tellFailure counts and logs a request about the upstream itself that failed, and heeds how long it asks to wait.
func (l *look) tellFailure(doing string, err error) apply.Failure {
	f := l.classify(err)
	l.atLeast = max(l.atLeast, f.RetryAfter)
	l.record.unable = f.Reason
	countFailure(l.name, "", f.Reason)
	l.log.Info("a request about the upstream failed and is tried again", "upstream", l.ref.String(), "doing", doing, "reason", f.Reason, "message", f.Message)
	return f
}

// classify is apply.Classify, without what the API server quotes of Secrets that are inputs.
func (l *look) classify(err error) apply.Failure {
	f := apply.Classify(err)
	f.Message = l.pipeline.Mask(l.inputsRead(), f.Message)
	return f
}

// writeReport writes the upstream's status where it says something new. It tells whether it said all of it before.
func (l *look) writeReport(ctx context.Context, report pipeline.Report) bool {
	l.tellDropped(report)
	if report.Status == nil || !report.Changed || l.record.retry.wait(l.record.asked, l.now) > 0 {
		return report.Status != nil && !report.Changed
	}
	saying := l.saying(report.Status)
	if l.spaced = l.statusWait(&l.record.said, saying, l.now); l.spaced > 0 {
		return false
	}
	resp, err := l.writeStatus(ctx, report.Status)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		l.record.letGo(l.upstream.GetUID(), l.now) // its watch is behind
		return false
	case err != nil:
		l.tellFailure("writing the status", err)
		l.upstreamFailed = true
		return false
	}
	if l.record.said.wrote(saying, l.now, l.calmAfter()); l.record.said.undone == statusContestedAfter {
		l.log.Info("somebody else keeps writing over the status; writes are spaced out", "upstream", l.ref.String())
	}
	// Somebody else's change may have come back with it: then the news of it must be looked at.
	l.upstream = withoutManagedFields(resp)
	complete := l.question(l.pipeline.ReadsStatus()) == l.record.digest
	if complete {
		l.record.version = resp.GetResourceVersion()
	}
	l.record.wrote(resp, complete)
	return false
}

// writeStatus applies our part of the status where conditions are a keyed list; else it merges, with the version that
// was read, so that conditions of others that came meanwhile are not lost.
func (l *look) writeStatus(ctx context.Context, want map[string]any) (*unstructured.Unstructured, error) {
	t, up := l.upstreamTarget(l.ref), l.pipeline.Upstream
	if l.pipeline.Storable.Conditions == status.ConditionsKeyed {
		own := l.pipeline.OwnConditions(want)
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
