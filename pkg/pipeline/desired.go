package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// tookTooLong reports whether a template, or an expression with a budget of its own, got no time to end.
func tookTooLong(err error) bool {
	return errors.Is(err, render.ErrTime) || errors.Is(err, rules.ErrTime)
}

// Desired evaluates rules, `when` and templates for an upstream and its inputs. Failures are part of the result.
func (p *Pipeline) Desired(ctx context.Context, upstream *unstructured.Unstructured, in Inputs) *operator.Desired {
	if p.OnlyDeletes {
		return p.Failed(errOnlyDeletes)
	}
	budget := rules.NewBudget(ctx)
	w := p.desired(upstream, in, budget)
	for k := range w.Objects {
		o := &w.Objects[k]
		o.CutShort = budget.Expired() || tookTooLong(o.Err)
	}
	return w
}

func (p *Pipeline) desired(upstream *unstructured.Unstructured, in Inputs, budget *rules.Budget) *operator.Desired {
	vars := p.vars(upstream, in)
	in.budget, in.values, in.rules = in.renderBudget(), vars.Values, budget
	w := p.Failed(nil)
	if err := in.problem(p.validatorInputs); err != nil {
		return p.Failed(err)
	}
	for _, f := range p.failures(vars, budget) {
		w.Invalid = append(w.Invalid, f.String())
	}
	if len(w.Invalid) > 0 {
		return w
	}
	items := p.items(vars, in, budget)
	if w.Invalid = tooMany(p, items); len(w.Invalid) > 0 {
		return w
	}
	if in.larger != nil && budget.Left() < rules.CostPerObject-rules.CostPerObject/16 {
		if err := in.larger(); err != nil {
			return p.Failed(err)
		}
	}
	p.addObjects(w, upstream, in, vars, budget, items)
	return w
}

// Failures are the rules of validate that an upstream breaks.
func (p *Pipeline) Failures(ctx context.Context, upstream *unstructured.Unstructured, in Inputs) []rules.Failure {
	return p.failures(p.vars(upstream, in), rules.NewBudget(ctx))
}

func (p *Pipeline) failures(vars rules.Vars, budget *rules.Budget) []rules.Failure {
	if p.validator == nil {
		return nil
	}
	failures := p.validator.Validate(vars, budget)
	for i, f := range failures {
		if p.quietRules[f.Index] {
			failures[i] = p.validator.Redacted(f)
		}
	}
	return failures
}

// addObjects finds out the objects of all downstreams, each after those that it reads. If one has too many items, the upstream is invalid.
func (p *Pipeline) addObjects(
	w *operator.Desired, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget, items []itemList,
) {
	lists := make([][]operator.DesiredObject, len(p.Downstreams))
	of := func(i int) []operator.DesiredObject { return lists[i] }
	note := func(r operator.SiblingRead) {
		if !slices.Contains(w.Siblings, r) {
			w.Siblings = append(w.Siblings, r)
		}
	}
	for _, i := range p.order {
		d := p.Downstreams[i]
		inputs, err := p.withSiblings(d, of, in, note)
		its := vars
		its.Downstreams, inputs.lacking = inputs.downstreams, err
		switch {
		case d.items == nil || !d.readsSiblings(d.items):
		case err != nil:
			items[i] = itemList{err: err}
		default:
			if items[i].items, items[i].err = d.itemsOf(its, inputs, budget); len(items[i].items) > *d.Config.ForEach.MaxItems {
				w.Invalid = tooMany(p, items)
				return
			}
		}
		lists[i] = p.desiredObjects(d, upstream, inputs, its, budget, items[i])
	}
	w.Objects = slices.Concat(lists...)
	p.refuseSharedTargets(w)
}

// errOnlyDeletes is why nothing is known but what becomes of an upstream that is being deleted.
var errOnlyDeletes = errors.New("the config has errors: only deletions are carried out")

// vars are what expressions can read.
func (p *Pipeline) vars(upstream *unstructured.Unstructured, in Inputs) rules.Vars {
	vars := rules.Vars{Self: upstream.Object, Params: p.params, Inputs: in.objects, Downstreams: in.downstreams, Values: in.values}
	if vars.Values == nil && len(p.variables) > 0 {
		vars.Values = rules.NewValues()
	}
	return vars
}

func (p *Pipeline) desiredObject(d *Downstream, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget) operator.DesiredObject {
	if err := in.problem(d.whenInputs); err != nil {
		return operator.DesiredObject{Err: err}
	}
	if d.when != nil {
		if in.lacking != nil && d.readsSiblings(d.when) {
			return operator.DesiredObject{Err: in.lacking}
		}
		wanted, err := d.when.Eval(vars, budget)
		if err != nil {
			return operator.DesiredObject{Err: d.lacksField(hideValues(d.hidesValues, redact.Errorf("evaluating when: %w", err)))}
		}
		if wanted != true {
			return operator.DesiredObject{}
		}
	}
	if err := d.unserved(); err != nil {
		return operator.DesiredObject{Err: err}
	}
	if err := cmp.Or(in.problem(d.inputs), in.lacking); err != nil {
		return operator.DesiredObject{Err: err}
	}
	doc, err := p.document(d, upstream, in)
	if err != nil {
		return operator.DesiredObject{Err: err}
	}
	return *doc
}

// refuseSharedTargets fails all but the first of several downstreams that render one and the same object: two
// documents for one object would undo each other.
func (p *Pipeline) refuseSharedTargets(w *operator.Desired) {
	if len(w.Objects) == 1 {
		return
	}
	type target struct {
		gk  string
		ref operator.Ref
	}
	seen := map[target]int{}
	for i := range w.Objects {
		dw := &w.Objects[i]
		if dw.Err != nil || !dw.Wanted {
			continue
		}
		d := p.Downstreams[dw.Downstream]
		key := target{d.GVK().GroupKind().String(), dw.Target}
		if first, ok := seen[key]; ok && first != dw.Downstream {
			*dw = operator.DesiredObject{Downstream: dw.Downstream, Several: dw.Several, Item: dw.Item, Err: fmt.Errorf(
				"%s is already the object of downstream %s: give one of them another name", dw.Target, p.Downstreams[first].Name)}
			continue
		}
		seen[key] = dw.Downstream
	}
}
