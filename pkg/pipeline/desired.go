package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Desired is what one upstream asks for. It depends on the upstream, its inputs and the pipeline alone, so it is remembered
// by their digest until one of them changes.
type Desired struct {
	// Invalid holds the rules that failed; then nothing is known of Objects.
	Invalid []rules.Failure
	// Objects are in the order of the config's downstreams, at least one for each.
	Objects []DesiredObject
	// siblings are what was read of live objects.
	siblings []SiblingRead
	// items are those of forEach, by downstream; nil until they are needed.
	items [][]any
}

// DesiredObject is one object that an upstream asks for.
type DesiredObject struct {
	// Downstream is the index of the downstream in the config.
	Downstream int
	// item is the index of the item, as the expression gave them.
	item int
	// Several tells that the downstream may have any number of objects. If it has none, or they are not known, one that is not wanted
	// stands in the list.
	Several bool
	// itemsUnknown is true for the one object of a downstream whose items cannot be told.
	itemsUnknown bool
	// Wanted is false if `when` says so.
	Wanted bool
	// Reference reports whether it is marked by an owner reference; else by the owner annotation.
	Reference bool
	// cutShort is true, for all objects, if an expression of any got no time to end.
	cutShort bool
	// Err is why it cannot be told: `when` or the template failed, or an input is missing.
	Err error
	// Target is where it shall stand.
	Target Ref
	// Hash is H: the digest of the document with conventions, without owner marks and without itself.
	Hash string
	// Sum is the digest that the projection of the live object has where the API server changed nothing.
	Sum drift.Sum

	document map[string]any
	// secret has the keys that the document of a Secret gives, in order; nil for another kind.
	secret *drift.Secret
}

// TookTooLong reports whether a rule, an expression or a template got no time to end. It is retried: the process may have been busy.
func (d *Desired) TookTooLong() bool {
	return slices.ContainsFunc(d.Objects, func(o DesiredObject) bool { return o.cutShort || tookTooLong(o.Err) })
}

// tookTooLong reports whether a template, or an expression with a budget of its own, got no time to end.
func tookTooLong(err error) bool {
	return errors.Is(err, render.ErrTime) || errors.Is(err, rules.ErrTime)
}

// Desired evaluates rules, `when` and templates for an upstream and its inputs. Failures are part of the result.
func (p *Pipeline) Desired(ctx context.Context, upstream *unstructured.Unstructured, in Inputs) *Desired {
	if p.OnlyDeletes {
		return p.failed(errOnlyDeletes)
	}
	budget := rules.NewBudget(ctx)
	w := p.desired(upstream, in, budget)
	for k := range w.Objects {
		w.Objects[k].cutShort = budget.Expired()
	}
	return w
}

func (p *Pipeline) desired(upstream *unstructured.Unstructured, in Inputs, budget *rules.Budget) *Desired {
	vars := p.vars(upstream, in)
	in.budget, in.values, in.rules = in.renderBudget(), vars.Values, budget
	w := p.failed(nil)
	if err := in.problem(p.validatorInputs); err != nil {
		return p.failed(err)
	}
	if p.validator != nil {
		if w.Invalid = p.validator.Validate(vars, budget); len(w.Invalid) > 0 {
			for i, f := range w.Invalid {
				if p.quietRules[f.Index] {
					w.Invalid[i] = p.validator.Redacted(f)
				}
			}
			return w
		}
	}
	items := p.items(vars, in, budget)
	if w.Invalid = tooMany(p, items); len(w.Invalid) > 0 {
		return w
	}
	if in.larger != nil && budget.Left() < rules.CostPerObject-rules.CostPerObject/16 {
		if err := in.larger(); err != nil {
			return p.failed(err)
		}
	}
	p.addObjects(w, upstream, in, vars, budget, items)
	return w
}

// addObjects finds out the objects of all downstreams, each after those that it reads. If one has too many items, the upstream is invalid.
func (p *Pipeline) addObjects(
	w *Desired, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget, items []itemList,
) {
	lists := make([][]DesiredObject, len(p.Downstreams))
	of := func(i int) []DesiredObject { return lists[i] }
	note := func(r SiblingRead) {
		if !slices.Contains(w.siblings, r) {
			w.siblings = append(w.siblings, r)
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

// failed is a desired state of which nothing is known, because of err.
func (p *Pipeline) failed(err error) *Desired {
	w := &Desired{Objects: make([]DesiredObject, len(p.Downstreams))}
	for i := range w.Objects {
		w.Objects[i] = DesiredObject{Downstream: i, Several: p.Downstreams[i].Several(), Err: err}
	}
	return w
}

// First is the index of the first object of a downstream.
func (d *Desired) First(downstream int) int {
	return sort.Search(len(d.Objects), func(k int) bool { return d.Objects[k].Downstream >= downstream })
}

// of are the objects of a downstream.
func (d *Desired) of(downstream int) []DesiredObject {
	return d.Objects[d.First(downstream):d.First(downstream+1)]
}

// vars are what expressions can read.
func (p *Pipeline) vars(upstream *unstructured.Unstructured, in Inputs) rules.Vars {
	vars := rules.Vars{Self: upstream.Object, Params: p.params, Inputs: in.objects, Downstreams: in.downstreams, Values: in.values}
	if vars.Values == nil && len(p.variables) > 0 {
		vars.Values = rules.NewValues()
	}
	return vars
}

func (p *Pipeline) desiredObject(d *Downstream, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget) DesiredObject {
	if err := in.problem(d.whenInputs); err != nil {
		return DesiredObject{Err: err}
	}
	if d.when != nil {
		if in.lacking != nil && d.readsSiblings(d.when) {
			return DesiredObject{Err: in.lacking}
		}
		wanted, err := d.when.Eval(vars, budget)
		if err != nil {
			return DesiredObject{Err: d.lacksField(hideValues(d.hidesValues, redact.Errorf("evaluating when: %w", err)))}
		}
		if wanted != true {
			return DesiredObject{}
		}
	}
	if err := d.unserved(); err != nil {
		return DesiredObject{Err: err}
	}
	if err := cmp.Or(in.problem(d.inputs), in.lacking); err != nil {
		return DesiredObject{Err: err}
	}
	doc, err := p.document(d, upstream, in)
	if err != nil {
		return DesiredObject{Err: err}
	}
	return *doc
}

// refuseSharedTargets fails all but the first of several downstreams that render one and the same object: two
// documents for one object would undo each other.
func (p *Pipeline) refuseSharedTargets(w *Desired) {
	if len(w.Objects) == 1 {
		return
	}
	type target struct {
		gk  string
		ref Ref
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
			*dw = DesiredObject{Downstream: dw.Downstream, Several: dw.Several, item: dw.item, Err: fmt.Errorf(
				"%s is already the object of downstream %s: give one of them another name", dw.Target, p.Downstreams[first].Name)}
			continue
		}
		seen[key] = dw.Downstream
	}
}

// Forget drops the rendered documents and the items, which are large; Document renders again.
func (d *Desired) Forget() *Desired {
	d.items = nil
	for k := range d.Objects {
		d.Objects[k].document = nil
	}
	return d
}
