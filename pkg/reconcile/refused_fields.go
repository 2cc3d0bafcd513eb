package reconcile

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// maxStatusWrites is how often one reconciliation writes the status: whole, twice without what the API server names, and last
// without anything that an author of the upstream can choose.
const maxStatusWrites = 4

// unstorable are the upstreams for which values of status.fields are left out, because the API server refused them by the
// current definition of their kind. With another definition they are tried again.
type unstorable struct {
	mu          sync.Mutex
	upstreams   map[operator.Ref]struct{}
	definitions map[string]int // how often the watch of a namespace has found another one; "" is that of all
}

// definition is the number of the definition by which the API server validates an upstream now.
func (r *unstorable) definition(ref operator.Ref) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number(ref)
}

func (r *unstorable) number(ref operator.Ref) int {
	if ref.Namespace == "" {
		return r.definitions[""]
	}
	return r.definitions[""] + r.definitions[ref.Namespace]
}

// note remembers an upstream. It returns false if the definition has changed since.
func (r *unstorable) note(ref operator.Ref, definition int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number(ref) != definition {
		return false
	}
	if r.upstreams == nil {
		r.upstreams = map[operator.Ref]struct{}{}
	}
	r.upstreams[ref] = struct{}{}
	return true
}

func (r *unstorable) forget(ref operator.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.upstreams, ref)
}

// expire records that the definition may have changed, and returns the upstreams to reconcile; namespace is that of the watch
// that showed it.
func (r *unstorable) expire(namespace string) (refs []operator.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.definitions == nil {
		r.definitions = map[string]int{}
	}
	r.definitions[namespace]++
	for ref := range r.upstreams {
		if namespace == "" || ref.Namespace == namespace {
			refs = append(refs, ref)
			delete(r.upstreams, ref)
		}
	}
	return refs
}

// withoutRefused leaves out of a report what is known to be refused.
func (r *reconciliation) withoutRefused(wanted report.Report) report.Report {
	refused := r.Memory.Notes.Get().Refused
	if refused.Definition != r.unstorable.definition(r.Ref) {
		return wanted
	}
	return report.WithoutRefused(r.Pipeline.Settings, wanted, r.Upstream, refused.Fields)
}

// writeStorable writes the status and, if the API server refuses it, again without what cannot be stored. It returns what was
// written; no object if the status contains it already.
func (r *reconciliation) writeStorable(ctx context.Context, wanted report.Report) (report.Report, *unstructured.Unstructured, error) {
	definition, denied := r.unstorable.definition(r.Ref), false
	resp, err := r.replaceStatus(ctx, wanted)
	for n := 1; err != nil; n++ {
		f, causes := act.Classify(err, r.Pipeline.UpstreamWords), apply.InvalidCauses(err)
		if !f.Persistent() || n == maxStatusWrites {
			return wanted, nil, err
		}
		without, ok := report.Refuse(r.Pipeline.Settings, wanted, r.Upstream, causes, f.Reason, n == maxStatusWrites-1)
		if !ok {
			return wanted, nil, err
		}
		r.logRefused(f)
		denied = denied || f.Reason == apply.ReasonDenied || f.Reason == apply.ReasonRejected && len(causes) == 0
		if wanted, resp, err = without, nil, nil; r.needsStatusWrite(wanted) {
			resp, err = r.replaceStatus(ctx, wanted)
		}
	}
	r.rememberRefused(wanted.Refused, definition, denied)
	return wanted, resp, nil
}

// logRefused logs why the status is written again without some values.
func (r *reconciliation) logRefused(f apply.Failure) {
	if f.Reason == apply.ReasonSchemaMismatch {
		r.Host.RecheckKinds()
	}
	counters.Failure(r.Name, "", f.Reason)
	logging.Warn(r.Log, "the status was refused: writing it without the values that cannot be stored", "upstream", r.Ref.String(), "reason", f.Reason, "message", f.Message)
}

// rememberRefused remembers what was refused by that definition, so that it is not tried in each reconciliation. What admission
// denied is tried again later: nobody tells when a policy or webhook changes.
func (r *reconciliation) rememberRefused(refused report.RefusedFields, definition int, denied bool) {
	if denied {
		refused, r.upstreamFailed = report.RefusedFields{}, true
	}
	kept := memory.Refused{Fields: refused, Definition: definition}
	if !report.Any(refused) {
		kept = memory.Refused{}
	}
	r.Memory.Notes.Set(report.Any(refused), func(n *memory.Notes) { n.Refused = kept })
	switch {
	case !report.Any(refused):
		r.unstorable.forget(r.Ref)
	case !r.unstorable.note(r.Ref, definition):
		r.Host.Enqueue(r.Ref)
	}
}
