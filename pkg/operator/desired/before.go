package desired

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// DesiredBefore renders the object of deletion.before; it is not wanted if `when` is false. Its document has the
// config's finalizer, so that neither a person nor a time to live can make it vanish before its outcome is recorded.
func (r *Renderer) DesiredBefore(upstream *unstructured.Unstructured, in Inputs) operator.DesiredObject {
	h := r.Before.Object
	if wanted, err := r.wantsBefore(upstream, in); err != nil || !wanted {
		return operator.DesiredObject{Err: err, CutShort: tookTooLong(err)}
	}
	if err := h.unserved(); err != nil {
		return operator.DesiredObject{Err: err}
	}
	if err := in.problem(h.Inputs); err != nil {
		return operator.DesiredObject{Err: err}
	}
	w, err := r.document(h, upstream, in)
	if err != nil {
		return operator.DesiredObject{Err: err, CutShort: tookTooLong(err)}
	}
	w.Document["metadata"].(map[string]any)["finalizers"] = []any{r.Config.Conventions.Finalizer}
	w.Wanted = true
	return *w
}

// wantsBefore evaluates deletion.before.when.
func (r *Renderer) wantsBefore(upstream *unstructured.Unstructured, in Inputs) (bool, error) {
	h := r.Before.Object
	if h.When == nil {
		return true, nil
	}
	if err := in.problem(h.WhenInputs); err != nil {
		return false, err
	}
	wanted, err := h.When.Eval(r.VarsOf(upstream, in), rules.NewBudget(context.Background()))
	if err != nil {
		return false, redact.Hide(r.Before.HidesValues, redact.Errorf("evaluating deletion.before.when: %w", err))
	}
	return wanted == true, nil
}

// EarlierBeforeLive is the live object of an earlier deletion.before, with what says whether it has finished.
func (r *Renderer) EarlierBeforeLive(obj *unstructured.Unstructured) *drift.Live {
	v := BeforeView(r.Settings, "status", "conditions")
	return v.Live(obj)
}

// BeforeView is what is kept in memory of a deletion.before object: the marks, and some fields.
func BeforeView(s *operator.Settings, fields ...string) drift.View {
	conv := s.Config.Conventions
	return drift.View{Manager: conv.FieldManager, Hash: s.Hash, OwnerAnnotation: conv.Owner.Annotation,
		Aside: marks.Aside(s), Previous: s.Previous,
		Keep: [][]string{fields}}
}
