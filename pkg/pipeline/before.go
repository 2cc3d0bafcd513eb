package pipeline

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// BeforeObject is the compiled deletion.before.
type BeforeObject struct {
	Config *config.Before
	// Object has what it shares with a downstream: kind, view, selector and template. It is none of Pipeline.Downstreams.
	Object *Downstream

	done, failed *rules.Program
	hidesValues  bool // their errors may quote a value of a Secret
}

// BeforeProgress returns a function that evaluates doneWhen and failedWhen, which may read inputs.
func (p *Pipeline) BeforeProgress(upstream *unstructured.Unstructured, in Inputs) func(live *drift.Live) operator.Progress {
	return func(live *drift.Live) operator.Progress {
		vars, budget := p.vars(upstream, in), rules.NewBudget(context.Background())
		vars.Downstream = live.Kept
		if failed, err := p.Before.failed.Eval(vars, budget); err == nil && failed == true {
			return operator.Progress{Failed: true}
		}
		done, err := p.Before.done.Eval(vars, budget)
		return operator.Progress{Done: done == true, TookTooLong: budget.Expired(), Err: hideValues(p.Before.hidesValues, err)}
	}
}

// DesiredBefore renders the object of deletion.before; it is not wanted if `when` is false. Its document has the config's finalizer, so that neither a person nor
// a time to live can make it vanish before its outcome is recorded.
func (p *Pipeline) DesiredBefore(upstream *unstructured.Unstructured, in Inputs) operator.DesiredObject {
	h := p.Before.Object
	if wanted, err := p.wantsBefore(upstream, in); err != nil || !wanted {
		return operator.DesiredObject{Err: err, CutShort: tookTooLong(err)}
	}
	if err := h.unserved(); err != nil {
		return operator.DesiredObject{Err: err}
	}
	if err := in.problem(h.inputs); err != nil {
		return operator.DesiredObject{Err: err}
	}
	w, err := p.document(h, upstream, in)
	if err != nil {
		return operator.DesiredObject{Err: err, CutShort: tookTooLong(err)}
	}
	w.Document["metadata"].(map[string]any)["finalizers"] = []any{p.Config.Conventions.Finalizer}
	w.Wanted = true
	return *w
}

// wantsBefore evaluates deletion.before.when.
func (p *Pipeline) wantsBefore(upstream *unstructured.Unstructured, in Inputs) (bool, error) {
	h := p.Before.Object
	if h.when == nil {
		return true, nil
	}
	if err := in.problem(h.whenInputs); err != nil {
		return false, err
	}
	wanted, err := h.when.Eval(p.vars(upstream, in), rules.NewBudget(context.Background()))
	if err != nil {
		return false, hideValues(p.Before.hidesValues, redact.Errorf("evaluating deletion.before.when: %w", err))
	}
	return wanted == true, nil
}

// BeforeDocument is the document to send for a desired state of DesiredBefore.
func (p *Pipeline) BeforeDocument(w *operator.DesiredObject) map[string]any { return w.Document }
