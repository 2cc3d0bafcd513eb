package write

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// maxStatusWrites is how often one reconciliation writes the status: whole, twice without what the API server names,
// and last without anything that an author of the upstream can choose.
const maxStatusWrites = 4

// withoutRefused leaves out of a report what is known to be refused.
func (w *Writer) withoutRefused(wanted report.Report) report.Report {
	refused := w.Memory.Notes.Get().Refused
	if refused.Definition != w.Unstorable.definition(w.Ref) {
		return wanted
	}
	return report.WithoutRefused(w.Pipeline.Settings, wanted, w.Upstream, refused.Fields)
}

// writeStorable writes the status and, if the API server refuses it, again without what cannot be stored. It returns
// what was written; no object if the status contains it already.
func (w *Writer) writeStorable(
	ctx context.Context, wanted report.Report,
) (report.Report, *unstructured.Unstructured, error) {
	definition, denied := w.Unstorable.definition(w.Ref), false
	resp, err := w.replaceStatus(ctx, wanted)
	for n := 1; err != nil; n++ {
		f, causes := act.Classify(err, w.Pipeline.UpstreamWords), apply.InvalidCauses(err)
		if !f.Persistent() || n == maxStatusWrites {
			return wanted, nil, err
		}
		without, ok := report.Refuse(w.Pipeline.Settings, wanted, w.Upstream, causes, f.Reason, n == maxStatusWrites-1)
		if !ok {
			return wanted, nil, err
		}
		w.logRefused(f)
		denied = denied || f.Reason == apply.ReasonDenied || f.Reason == apply.ReasonRejected && len(causes) == 0
		if wanted, resp, err = without, nil, nil; w.NeedsWrite(wanted) {
			resp, err = w.replaceStatus(ctx, wanted)
		}
	}
	w.rememberRefused(wanted.Refused, definition, denied)
	return wanted, resp, nil
}

// logRefused logs why the status is written again without some values.
func (w *Writer) logRefused(f apply.Failure) {
	if f.Reason == apply.ReasonSchemaMismatch {
		w.Host.RecheckKinds()
	}
	counters.Failure(w.Name, "", f.Reason)
	logging.Warn(w.Log, "the status was refused: writing it without the values that cannot be stored", "upstream",
		w.Ref.String(), "reason", f.Reason, "message", f.Message)
}

// rememberRefused remembers what was refused by that definition, so that it is not tried in each reconciliation. What
// admission denied is tried again later: nothing shows when a policy or webhook changes.
func (w *Writer) rememberRefused(refused report.RefusedFields, definition int, denied bool) {
	if denied {
		refused, w.HasFailed = report.RefusedFields{}, true
	}
	kept := memory.Refused{Fields: refused, Definition: definition}
	if !report.Any(refused) {
		kept = memory.Refused{}
	}
	w.Memory.Notes.Set(report.Any(refused), func(n *memory.Notes) { n.Refused = kept })
	switch {
	case !report.Any(refused):
		w.Unstorable.Forget(w.Ref)
	case !w.Unstorable.note(w.Ref, definition):
		w.Host.Enqueue(w.Ref)
	}
}
