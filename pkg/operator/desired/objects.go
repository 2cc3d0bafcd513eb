package desired

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

func (r *Renderer) desiredObject(
	d *Downstream, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget,
) operator.DesiredObject {
	if err := in.problem(d.WhenInputs); err != nil {
		return operator.DesiredObject{Err: err}
	}
	if d.When != nil {
		if in.lacking != nil && d.ReadsSiblings(d.When) {
			return operator.DesiredObject{Err: in.lacking}
		}
		wanted, err := d.When.Eval(vars, budget)
		if err != nil {
			return operator.DesiredObject{Err: d.lacksField(redact.Hide(d.HidesValues,
				redact.Errorf("evaluating when: %w", err)))}
		}
		if wanted != true {
			return operator.DesiredObject{}
		}
	}
	if err := d.unserved(); err != nil {
		return operator.DesiredObject{Err: err}
	}
	if err := cmp.Or(in.problem(d.Inputs), in.lacking); err != nil {
		return operator.DesiredObject{Err: err}
	}
	doc, err := r.document(d, upstream, in)
	if err != nil {
		return operator.DesiredObject{Err: err}
	}
	return *doc
}

// refuseSharedTargets fails all but the first of several downstreams that render one and the same object: two
// documents for one object would undo each other.
func (r *Renderer) refuseSharedTargets(w *operator.Desired) {
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
		d := r.Downstreams[dw.Downstream]
		key := target{d.GVK().GroupKind().String(), dw.Target}
		if first, ok := seen[key]; ok && first != dw.Downstream {
			*dw = operator.DesiredObject{Downstream: dw.Downstream, Several: dw.Several, Item: dw.Item, Err: fmt.Errorf(
				"%s is already the object of downstream %s: give one of them another name", dw.Target, r.Downstreams[first].Name)}
			continue
		}
		seen[key] = dw.Downstream
	}
}

// desiredObjects are what an upstream asks for of one downstream, ordered by their targets; those that are not known
// come last.
func (r *Renderer) desiredObjects(
	d *Downstream, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget, items itemList,
) []operator.DesiredObject {
	if !d.Several() || items.err != nil {
		o := operator.DesiredObject{Err: items.err}
		if items.err == nil {
			o = r.desiredObject(d, upstream, in, vars, budget)
		}
		o.Downstream, o.Several, o.ItemsUnknown = d.Index, d.Several(), items.err != nil
		return []operator.DesiredObject{o}
	}
	var list []operator.DesiredObject
	for n, item := range items.items {
		vars.Item, in.item = item, item
		o := r.desiredObject(d, upstream, in, vars, budget)
		if o.Err != nil {
			o.Err = redact.Errorf("item %d: %w", n, o.Err)
		}
		if o.Downstream, o.Several, o.Item = d.Index, true, n; o.Wanted || o.Err != nil {
			list = append(list, o)
		}
	}
	refuseSharedNames(list)
	slices.SortStableFunc(list, func(a, b operator.DesiredObject) int {
		if (a.Err == nil) != (b.Err == nil) {
			if a.Err == nil {
				return -1
			}
			return 1
		}
		return a.Target.Compare(b.Target)
	})
	if len(list) == 0 {
		list = []operator.DesiredObject{{Downstream: d.Index, Several: true}}
	}
	return list
}

// refuseSharedNames fails all items of which several render one object: the order of the items must not say which one
// it is.
func refuseSharedNames(list []operator.DesiredObject) {
	at := map[operator.Ref][]int{}
	for k, o := range list {
		if o.Err == nil {
			at[o.Target] = append(at[o.Target], k)
		}
	}
	for target, of := range at {
		if len(of) == 1 {
			continue
		}
		numbers := make([]string, len(of))
		for i, k := range of {
			numbers[i] = fmt.Sprint(list[k].Item)
		}
		for _, k := range of {
			list[k] = operator.DesiredObject{Downstream: list[k].Downstream, Several: true, Item: list[k].Item, Err: fmt.Errorf(
				"items %s all give %s: let the template make a name of its own of each item", strings.Join(numbers, ", "), target)}
		}
	}
}
