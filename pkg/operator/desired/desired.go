package desired

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Render evaluates rules, `when` and templates for an upstream and its inputs. Failures are part of the result.
func (r *Renderer) Render(ctx context.Context, upstream *unstructured.Unstructured, in Inputs) *operator.Desired {
	if r.OnlyDeletes {
		return r.Failed(errOnlyDeletes)
	}
	budget := rules.NewBudget(ctx)
	w := r.evaluate(upstream, in, budget)
	for k := range w.Objects {
		o := &w.Objects[k]
		o.CutShort = budget.Expired() || tookTooLong(o.Err)
	}
	return w
}

func (r *Renderer) evaluate(upstream *unstructured.Unstructured, in Inputs, budget *rules.Budget) *operator.Desired {
	vars := r.VarsOf(upstream, in)
	in.budget, in.values, in.rules = in.renderBudget(), vars.Values, budget
	w := r.Failed(nil)
	if err := in.problem(r.ValidatorInputs); err != nil {
		return r.Failed(err)
	}
	for _, f := range r.failures(vars, budget) {
		w.Invalid = append(w.Invalid, f.String())
	}
	if len(w.Invalid) > 0 {
		return w
	}
	items := r.items(vars, in, budget)
	if w.Invalid = tooMany(r, items); len(w.Invalid) > 0 {
		return w
	}
	if in.larger != nil && budget.Left() < rules.CostPerObject-rules.CostPerObject/16 {
		if err := in.larger(); err != nil {
			return r.Failed(err)
		}
	}
	r.addObjects(w, upstream, in, vars, budget, items)
	return w
}

// failures are the rules of validate that an upstream breaks.
func (r *Renderer) failures(vars rules.Vars, budget *rules.Budget) []rules.Failure {
	if r.Validator == nil {
		return nil
	}
	failures := r.Validator.Validate(vars, budget)
	for i, f := range failures {
		if r.QuietRules[f.Index] {
			failures[i] = r.Validator.Redacted(f)
		}
	}
	return failures
}

// addObjects finds out the objects of all downstreams, each after those that it reads. If one has too many items, the
// upstream is invalid.
func (r *Renderer) addObjects(
	w *operator.Desired, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars,
	budget *rules.Budget, items []itemList,
) {
	lists := make([][]operator.DesiredObject, len(r.Downstreams))
	objectsOf := func(i int) []operator.DesiredObject { return lists[i] }
	note := func(r operator.SiblingRead) {
		if !slices.Contains(w.Siblings, r) {
			w.Siblings = append(w.Siblings, r)
		}
	}
	for _, i := range r.Order {
		d := r.Downstreams[i]
		inputs, err := r.withSiblings(d, objectsOf, in, note)
		its := vars
		its.Downstreams, inputs.lacking = inputs.downstreams, err
		switch {
		case d.Items == nil || !d.ReadsSiblings(d.Items):
		case err != nil:
			items[i] = itemList{err: err}
		default:
			if items[i].items, items[i].err = d.itemsOf(its, inputs, budget); len(items[i].items) > *d.Config.ForEach.MaxItems {
				w.Invalid = tooMany(r, items)
				return
			}
		}
		lists[i] = r.desiredObjects(d, upstream, inputs, its, budget, items[i])
	}
	w.Objects = slices.Concat(lists...)
	r.refuseSharedTargets(w)
}

// errOnlyDeletes is why nothing is known but what becomes of an upstream that is being deleted.
var errOnlyDeletes = errors.New("the config has errors: only deletions are carried out")
