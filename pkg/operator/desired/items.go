package desired

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

// itemList are the items of one downstream, or why they are not known.
type itemList struct {
	items []any
	err   error
}

// items evaluates forEach.items of all downstreams.
func (r *Renderer) items(vars rules.Vars, in Inputs, budget *rules.Budget) []itemList {
	all := make([]itemList, len(r.Downstreams))
	for i, d := range r.Downstreams {
		if d.Items != nil && !d.ReadsSiblings(d.Items) {
			all[i].items, all[i].err = d.itemsOf(vars, in, budget)
		}
	}
	return all
}

// itemsOf evaluates forEach.items. Of a map each item is {key, value}, in the order of the keys.
func (d *Downstream) itemsOf(vars rules.Vars, in Inputs, budget *rules.Budget) ([]any, error) {
	if d.Items == nil {
		return nil, nil
	}
	if err := in.problem(d.ItemsInputs); err != nil {
		return nil, err
	}
	value, err := d.Items.Eval(vars, budget)
	if err != nil {
		return nil, d.lacksField(redact.Hide(d.HidesValues, redact.Errorf("evaluating forEach.items: %w", err)))
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
func tooMany(r *Renderer, all []itemList) (list []string) {
	for i, d := range r.Downstreams {
		if n := len(all[i].items); d.Several() && n > *d.Config.ForEach.MaxItems {
			list = append(list, rules.Failure{Reason: rules.FieldValueInvalid, Message: fmt.Sprintf(
				"downstream %s has %d items, more than maxItems: %d", d.Name, n, *d.Config.ForEach.MaxItems)}.String())
		}
	}
	return list
}

// ItemAt is the item of object k, which is evaluated again if it was forgotten. It is nil where there are no items.
func (r *Renderer) ItemAt(
	w *operator.Desired, k int, vars rules.Vars, in Inputs, budget *rules.Budget,
) (item any, err error) {
	o := &w.Objects[k]
	d := r.Downstreams[o.Downstream]
	if d.Items == nil || !o.Wanted {
		return nil, nil
	}
	if w.Items == nil {
		w.Items = make([][]any, len(r.Downstreams))
	}
	if w.Items[o.Downstream] == nil {
		in, _ = r.withSiblings(d, w.Of, in, nil)
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

// DescribeItem says which item object k follows from: its position, and its key and value unless they may be of a
// Secret. It is empty where there are no items, or no such one.
func (r *Renderer) DescribeItem(w *operator.Desired, k int, upstream *unstructured.Unstructured, in Inputs) string {
	o := &w.Objects[k]
	d := r.Downstreams[o.Downstream]
	item, err := r.ItemAt(w, k, r.VarsOf(upstream, in), in, nil)
	if err != nil || item == nil {
		return ""
	}
	text := fmt.Sprintf("item %d", o.Item)
	if d.HidesValues {
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
