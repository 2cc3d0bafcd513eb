package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/status"
)

// WriteReport writes the upstream's status if it changes. It returns the report without the values that cannot be
// stored, and whether the status contained all of it before. cause is the digest of what it follows from, without what
// this write itself changes.
func (w *Writer) WriteReport(
	ctx context.Context, report report.Report, cause func() canonical.Sum,
) (report.Report, bool) {
	w.logDropped(report)
	report = w.withoutRefused(report)
	w.OnReport(report)
	if w.IsGone || !w.NeedsWrite(report) || w.Memory.Retry.Get().Wait(w.Memory.Cause(), w.Began) > 0 {
		return report, report.Status != nil && !report.Changed
	}
	if w.statusMustWait(ctx) {
		return report, false
	}
	because, saying := cause(), statusDigest(w.Pipeline.Settings, report.Status)
	if w.StatusDelay = w.Memory.Contests.Get().Status.Wait(because, saying, w.spacing(), w.Began); w.StatusDelay > 0 {
		w.ContestedBy = w.statusContenders(report, saying)
		return report, false
	}
	w.findStatusWriters(ctx, saying)
	report, resp, err := w.writeStorable(ctx, report)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		w.Memory.NoteGone(w.Upstream.GetUID(), w.Began) // its watch is behind
		return report, false
	case err != nil:
		w.ReportFailure("writing the status", err)
		w.HasFailed = true
		return report, false
	case resp == nil:
		return report, true
	}
	w.Log.V(1).Info("status written", "upstream", w.Ref.String(), "reason", report.Verdict.Reason)
	w.OnReport(report)
	w.Memory.Contests.Edit().Status.Write(because, statusDigest(w.Pipeline.Settings, report.Status), w.spacing(), w.Began)
	// The response may contain someone else's change: then the event about it must be handled.
	w.Upstream = WithoutManagedFields(resp)
	complete := w.Memory.IsRenderedFrom(w.ReadableDigest(w.Pipeline.ReadsStatus))
	if complete {
		w.Memory.SetRendered(resp.GetResourceVersion(), w.Memory.Inputs().Digest)
	}
	w.Memory.WroteUpstream(resp, complete)
	if lost := unstored(report.Status, resp); len(lost) > 0 {
		w.ReportFailure("writing the status", fmt.Errorf("%w %s: the version in which objects of %s are stored lacks them, "+
			"and nothing converts: add them to the schema of that version",
			act.ErrUnstored, strings.Join(lost, ", "), w.Pipeline.Upstream.GVK.GroupKind()))
		w.HasFailed = true
	}
	return report, false
}

// unstored are the parts of a status that the API server accepted and did not return.
func unstored(want map[string]any, resp *unstructured.Unstructured) (lost []string) {
	have, _, _ := unstructured.NestedMap(resp.Object, "status")
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if list, isList := want[key].([]any); want[key] == nil || isList && len(list) == 0 {
			continue
		}
		if _, ok := have[key]; !ok {
			lost = append(lost, ".status."+key)
		}
	}
	return lost
}

// logDropped logs once which status fields the kind cannot store.
func (w *Writer) logDropped(report report.Report) {
	if len(report.Dropped) == 0 {
		return
	}
	w.Unstorable.dropped.Do(func() {
		logging.Warn(w.Log, "the upstream's schema cannot store all of its status; corollary check prints the lines to add",
			"kind", w.Pipeline.Upstream.GVK.String(), "fields", strings.Join(report.Dropped, ", "))
	})
}

// NeedsWrite reports whether there is anything to write.
func (w *Writer) NeedsWrite(report report.Report) bool {
	return report.Status != nil && (report.Changed || w.previousInStatus())
}

// statusMustWait reports whether the status must not be written yet, because the cached upstream is older than what
// another process recorded in it.
func (w *Writer) statusMustWait(ctx context.Context) bool {
	after, err := w.EnsureLatest(ctx)
	if err != nil {
		w.ReportFailure("reading the upstream", err)
		w.HasFailed = true
		return true
	}
	w.StatusDelay = after
	return after > 0
}

// replaceStatus writes the status after removing what its schema cannot store any more.
func (w *Writer) replaceStatus(ctx context.Context, report report.Report) (*unstructured.Unstructured, error) {
	if err := w.removeMisfits(ctx, report.Misfits); err != nil {
		return nil, err
	}
	return w.writeStatus(ctx, report.Status)
}

// removeMisfits removes values from the status that its schema cannot store any more.
func (w *Writer) removeMisfits(ctx context.Context, misfits []fieldpath.Path) error {
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
	up, err := w.API.PatchStatus(ctx, w.target(), w.Pipeline.Upstream.HasStatus, w.Upstream.GetResourceVersion(),
		w.Upstream.GetUID(), content)
	if err == nil {
		w.Upstream = WithoutManagedFields(up)
	}
	return err
}

// writeStatus applies our part of the status if conditions are a keyed list; else it sends a merge patch with the
// resourceVersion that was read, so that conditions of others are not lost.
func (w *Writer) writeStatus(ctx context.Context, want map[string]any) (*unstructured.Unstructured, error) {
	t, up := w.target(), w.Pipeline.Upstream
	if w.Pipeline.Storable.Conditions == status.ConditionsKeyed {
		own := report.OwnConditions(w.Pipeline.Settings, want)
		send := func() (*unstructured.Unstructured, error) {
			return w.API.ApplyStatus(ctx, t, w.Upstream.GetAPIVersion(), w.Upstream.GetKind(),
				up.HasStatus, w.Upstream.GetUID(), own)
		}
		resp, err := send()
		if w.removeConditions(ctx, want, err) {
			resp, err = send()
		}
		if err != nil {
			return nil, err
		}
		return w.withdrawStatus(ctx, t, resp)
	}
	return w.API.PatchStatus(ctx, t, up.HasStatus, w.Upstream.GetResourceVersion(), w.Upstream.GetUID(), want)
}

// removeConditions removes the conditions that want has no more, if an apply without them was refused and they are
// there: another manager that has applied some of their fields, as an operator that has selected the upstream before,
// leaves the rest of them invalid.
func (w *Writer) removeConditions(ctx context.Context, want map[string]any, refused error) bool {
	kept, drops := report.KeptConditions(w.Upstream, want)
	if refused == nil || !drops || act.Classify(refused, w.Pipeline.UpstreamWords).Reason != apply.ReasonRejected {
		return false
	}
	up, err := w.API.PatchStatus(ctx, w.target(), w.Pipeline.Upstream.HasStatus, w.Upstream.GetResourceVersion(),
		w.Upstream.GetUID(), map[string]any{"conditions": kept})
	if err == nil {
		w.Upstream = WithoutManagedFields(up)
	}
	return err == nil
}

// ReportFailure counts and logs a failed request for the upstream itself, and takes over its Retry-After.
func (w *Writer) ReportFailure(doing string, err error) apply.Failure {
	f := act.Classify(err, w.Pipeline.UpstreamWords)
	if f.Reason == apply.ReasonSchemaMismatch {
		w.Host.RecheckKinds()
	}
	w.MinRetry = max(w.MinRetry, f.RetryAfter)
	w.Memory.SetUpstreamFailure(f.Reason)
	counters.Failure(w.Name, "", f.Reason)
	events.LogAt(w.Log, f)("request for the upstream failed, will retry", "upstream", w.Ref.String(), "doing", doing,
		"reason", f.Reason, "message", f.Message)
	return f
}

// withdrawStatus removes what the previous field manager has in the upstream's status, after ours was written:
// otherwise its conditions would stay forever. With mode Observe the previous manager may still be at work, and its
// status stays.
func (w *Writer) withdrawStatus(
	ctx context.Context, t apply.Target, written *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	previous := marks.PreviousManager(w.Pipeline.Settings)
	if previous == "" || w.Pipeline.Observing() {
		return written, nil
	}
	out, err := w.API.WithdrawStatus(ctx, t, written, w.Pipeline.Upstream.HasStatus, previous)
	w.Memory.Steps.IsWithdrawn = err == nil
	return out, err
}

// previousInStatus reports whether the watch has shown that the previous field manager applied to the status and this
// was not withdrawn yet: ours has not written the status, or a process died before it withdrew the previous one.
func (w *Writer) previousInStatus() bool {
	previous := marks.PreviousManager(w.Pipeline.Settings)
	return previous != "" && w.Cache.HasApplied(w.Ref, previous) &&
		!w.Memory.Steps.IsWithdrawn && !w.Pipeline.Observing() &&
		w.Pipeline.Storable.Conditions == status.ConditionsKeyed
}
