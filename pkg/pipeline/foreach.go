package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// This file is about forEach: one object for each item.

// itemList are the items of one downstream, or why they are not known.
type itemList struct {
	items []any
	err   error
}

// items evaluates forEach.items of all downstreams.
func (p *Pipeline) items(vars rules.Vars, in Inputs, budget *rules.Budget) []itemList {
	all := make([]itemList, len(p.Downstreams))
	for i, d := range p.Downstreams {
		if d.items != nil && !d.readsSiblings(d.items) {
			all[i].items, all[i].err = d.itemsOf(vars, in, budget)
		}
	}
	return all
}

// itemsOf evaluates forEach.items. Of a map each item is {key, value}, in the order of the keys.
func (d *Downstream) itemsOf(vars rules.Vars, in Inputs, budget *rules.Budget) ([]any, error) {
	if d.items == nil {
		return nil, nil
	}
	if err := in.problem(d.itemsInputs); err != nil {
		return nil, err
	}
	value, err := d.items.Eval(vars, budget)
	if err != nil {
		return nil, d.lacksField(hideValues(d.hidesValues, redact.Errorf("evaluating forEach.items: %w", err)))
	}
	switch value := value.(type) {
	case []any:
		return value, nil
	case map[string]any:
		list := make([]any, 0, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			list = append(list, map[string]any{"key": key, "value": value[key]})
		}
		return list, nil
	}
	return nil, fmt.Errorf("forEach.items gives no list and no map, but %T: write an expression that gives one", value)
}

// tooMany says of which downstreams there are more items than the config allows: the upstream is invalid then.
func tooMany(p *Pipeline, all []itemList) (list []string) {
	for i, d := range p.Downstreams {
		if n := len(all[i].items); d.Several() && n > *d.Config.ForEach.MaxItems {
			list = append(list, rules.Failure{Reason: rules.FieldValueInvalid, Message: fmt.Sprintf(
				"downstream %s has %d items, more than maxItems: %d", d.Name, n, *d.Config.ForEach.MaxItems)}.String())
		}
	}
	return list
}

// desiredObjects are what an upstream asks for of one downstream, ordered by their targets; those that are not known come last.
func (p *Pipeline) desiredObjects(
	d *Downstream, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget, items itemList,
) []operator.DesiredObject {
	if !d.Several() || items.err != nil {
		o := operator.DesiredObject{Err: items.err}
		if items.err == nil {
			o = p.desiredObject(d, upstream, in, vars, budget)
		}
		o.Downstream, o.Several, o.ItemsUnknown = d.Index, d.Several(), items.err != nil
		return []operator.DesiredObject{o}
	}
	var list []operator.DesiredObject
	for n, item := range items.items {
		vars.Item, in.item = item, item
		o := p.desiredObject(d, upstream, in, vars, budget)
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

// refuseSharedNames fails all items of which several render one object: the order of the items must not say which one it is.
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

// itemAt is the item of object k, which is evaluated again if it was forgotten. It is nil where there are no items.
func (p *Pipeline) itemAt(w *operator.Desired, k int, vars rules.Vars, in Inputs, budget *rules.Budget) (item any, err error) {
	o := &w.Objects[k]
	d := p.Downstreams[o.Downstream]
	if d.items == nil || !o.Wanted {
		return nil, nil
	}
	if w.Items == nil {
		w.Items = make([][]any, len(p.Downstreams))
	}
	if w.Items[o.Downstream] == nil {
		in, _ = p.withSiblings(d, w.Of, in, nil)
		vars.Downstreams = in.downstreams
		if w.Items[o.Downstream], err = d.itemsOf(vars, in, budget); err != nil {
			return nil, err
		}
	}
	if list := w.Items[o.Downstream]; o.Item < len(list) {
		return list[o.Item], nil
	}
	return nil, nil
}

// itemShown is how many bytes of an item DescribeItem shows.
const itemShown = 100

// DescribeItem says which item object k follows from: its position, and its key and value unless they may be of a Secret. It is empty
// where there are no items, or no such one.
func (p *Pipeline) DescribeItem(w *operator.Desired, k int, upstream *unstructured.Unstructured, in Inputs) string {
	o := &w.Objects[k]
	d := p.Downstreams[o.Downstream]
	item, err := p.itemAt(w, k, p.vars(upstream, in), in, nil)
	if err != nil || item == nil {
		return ""
	}
	text := fmt.Sprintf("item %d", o.Item)
	if d.hidesValues {
		return text
	}
	value, err := json.Marshal(item)
	if err != nil {
		return text
	}
	shown := strings.ToValidUTF8(string(value[:min(len(value), itemShown)]), "")
	if len(value) > itemShown {
		shown += "…"
	}
	return text + ": " + shown
}

// liveByName is what expressions read as downstreams: the live object of each, or a map of them by NameOf.
func (p *Pipeline) liveByName(results []operator.Result) map[string]any {
	out := make(map[string]any, len(p.Downstreams))
	for _, d := range p.Downstreams {
		out[d.Name] = map[string]any{}
	}
	for _, r := range results {
		d := p.Downstreams[r.Outcome.Downstream]
		switch {
		case r.Live == nil || r.Live.Kept == nil:
		case !d.Several():
			out[d.Name] = r.Live.Kept
		default:
			out[d.Name].(map[string]any)[d.NameOf(operator.RefOf(r.Live))] = r.Live.Kept
		}
	}
	return out
}
