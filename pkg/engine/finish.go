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
	l.reportStatus(ctx, results)
	l.eventOutcomes(d)
	if len(l.failures) > 0 || l.waits(d) {
		return l.retryLater()
	}
	l.record.retry.succeed()
	return l.lookAgain(d)
}

// results pairs every outcome with the object of ours that stands for it: the target, or what it is to replace.
func (l *look) results(d pipeline.Decision) []pipeline.Result {
	results := make([]pipeline.Result, len(d.Outcomes))
	for i, o := range d.Outcomes {
		results[i] = pipeline.Result{Outcome: o, Live: o.Live, Failure: l.failures[i]}
		if o.State == pipeline.StateConflict {
			results[i].Live = nil
		}
	}
	for _, o := range d.Leftovers {
		if r := &results[o.Downstream]; r.Live == nil && o.Action == pipeline.ActionNone && !o.Live.Deleting {
			r.Live = o.Live
		}
	}
	return results
}

// waits tells whether the decision left something undone that no event may announce: a conflict with an object that
// the watch does not see, an object that is going.
func (l *look) waits(d pipeline.Decision) bool {
	for _, o := range d.Outcomes {
		if o.State == pipeline.StateConflict || o.State == pipeline.StateWaiting || o.Action != pipeline.ActionNone {
			return true
		}
	}
	return false
}

// lookAgain is when the next look is due without an event: for a contested object after its back-off, and for a
// response that the cache has not confirmed once it is no longer believed.
func (l *look) lookAgain(d pipeline.Decision) time.Duration {
	var after time.Duration
	for _, o := range d.Outcomes {
		if o.RequeueAfter > 0 && (after == 0 || o.RequeueAfter < after) {
			after = o.RequeueAfter
		}
	}
	return after
}

// retryLater notes a failed look and returns how long it waits.
func (l *look) retryLater() time.Duration {
	retry := l.pipeline.Config.Retry
	return l.record.retry.fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), l.atLeast, l.record.digest, l.now)
}

// calmAfter is how long nobody must have undone a repair for the count of undone ones to start over.
func (s *session) calmAfter() time.Duration {
	return 2 * time.Duration(s.pipeline.Config.Retry.MaxDelay)
}

// failUpstream notes a request about the upstream itself that failed: nothing further is done in this look.
func (l *look) failUpstream(doing string, err error) {
	f := apply.Classify(err)
	l.atLeast = max(l.atLeast, f.RetryAfter)
	for i := range l.pipeline.Downstreams {
		if l.failures[i] == nil {
			l.failures[i] = &pipeline.Failure{Reason: f.Reason, Message: f.Message}
		}
	}
	countFailure(l.name, "", f.Reason)
	l.log.Info(doing+" failed and is tried again", "upstream", l.ref.String(), "reason", f.Reason, "message", f.Message)
}

// reportStatus writes the upstream's status where it says something new.
func (l *look) reportStatus(ctx context.Context, results []pipeline.Result) {
	report := l.pipeline.Report(ctx, l.upstream, l.record.wish, results, metav1.NewTime(l.now))
	l.tellDropped(report)
	if report.Status == nil || !report.Changed {
		return
	}
	resp, err := l.writeStatus(ctx, report.Status)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		return
	case err != nil:
		f := apply.Classify(err)
		l.failures[-1] = &pipeline.Failure{Reason: f.Reason, Message: f.Message}
		l.atLeast = max(l.atLeast, f.RetryAfter)
		countFailure(l.name, "", f.Reason)
		l.log.Info("writing the status failed and is tried again", "upstream", l.ref.String(), "reason", f.Reason, "message", f.Message)
		return
	}
	l.record.upstream = withoutManagedFields(resp)
}

// writeStatus applies our part of the status where conditions are a keyed list; else it merges, with the version that
// was read, so that conditions of others that came meanwhile are not lost.
func (l *look) writeStatus(ctx context.Context, want map[string]any) (*unstructured.Unstructured, error) {
	t, up := l.upstreamTarget(l.ref), l.pipeline.Upstream
	if l.pipeline.Storable.Conditions == status.ConditionsKeyed {
		own := l.pipeline.OwnConditions(want)
		return l.client.ApplyStatus(ctx, t, l.upstream.GetAPIVersion(), l.upstream.GetKind(), up.HasStatus, l.upstream.GetUID(), own)
	}
	return l.client.PatchStatus(ctx, t, up.HasStatus, l.upstream.GetResourceVersion(), l.upstream.GetUID(), want)
}

func withoutManagedFields(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetManagedFields(nil)
	return u
}
