package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
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
func tooMany(p *Pipeline, all []itemList) (list []rules.Failure) {
	for i, d := range p.Downstreams {
		if n := len(all[i].items); d.Several() && n > *d.Config.ForEach.MaxItems {
			list = append(list, rules.Failure{Index: -1, Reason: rules.FieldValueInvalid, Message: fmt.Sprintf(
				"downstream %s has %d items, more than maxItems: %d", d.Name, n, *d.Config.ForEach.MaxItems)})
		}
	}
	return list
}

// desiredObjects are what an upstream asks for of one downstream, ordered by their targets; those that are not known come last.
func (p *Pipeline) desiredObjects(
	d *Downstream, upstream *unstructured.Unstructured, in Inputs, vars rules.Vars, budget *rules.Budget, items itemList,
) []DesiredObject {
	if !d.Several() || items.err != nil {
		o := DesiredObject{Err: items.err}
		if items.err == nil {
			o = p.desiredObject(d, upstream, in, vars, budget)
		}
		o.Downstream, o.Several, o.itemsUnknown = d.Index, d.Several(), items.err != nil
		return []DesiredObject{o}
	}
	var list []DesiredObject
	for n, item := range items.items {
		vars.Item, in.item = item, item
		o := p.desiredObject(d, upstream, in, vars, budget)
		if o.Err != nil {
			o.Err = redact.Errorf("item %d: %w", n, o.Err)
		}
		if o.Downstream, o.Several, o.item = d.Index, true, n; o.Wanted || o.Err != nil {
			list = append(list, o)
		}
	}
	refuseSharedNames(list)
	slices.SortStableFunc(list, func(a, b DesiredObject) int {
		if (a.Err == nil) != (b.Err == nil) {
			if a.Err == nil {
				return -1
			}
			return 1
		}
		return a.Target.Compare(b.Target)
	})
	if len(list) == 0 {
		list = []DesiredObject{{Downstream: d.Index, Several: true}}
	}
	return list
}

// refuseSharedNames fails all items of which several render one object: the order of the items must not say which one it is.
func refuseSharedNames(list []DesiredObject) {
	at := map[Ref][]int{}
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
			numbers[i] = fmt.Sprint(list[k].item)
		}
		for _, k := range of {
			list[k] = DesiredObject{Downstream: list[k].Downstream, Several: true, item: list[k].item, Err: fmt.Errorf(
				"items %s all give %s: let the template make a name of its own of each item", strings.Join(numbers, ", "), target)}
		}
	}
}

// itemAt is the item of object k, which is evaluated again if it was forgotten. It is nil where there are no items.
func (p *Pipeline) itemAt(w *Desired, k int, vars rules.Vars, in Inputs, budget *rules.Budget) (item any, err error) {
	o := &w.Objects[k]
	d := p.Downstreams[o.Downstream]
	if d.items == nil || !o.Wanted {
		return nil, nil
	}
	if w.items == nil {
		w.items = make([][]any, len(p.Downstreams))
	}
	if w.items[o.Downstream] == nil {
		in, _ = p.withSiblings(d, w.of, in, nil)
		vars.Downstreams = in.downstreams
		if w.items[o.Downstream], err = d.itemsOf(vars, in, budget); err != nil {
			return nil, err
		}
	}
	if list := w.items[o.Downstream]; o.item < len(list) {
		return list[o.item], nil
	}
	return nil, nil
}

// itemShown is how many bytes of an item DescribeItem shows.
const itemShown = 100

// DescribeItem says which item object k follows from: its position, and its key and value unless they may be of a Secret. It is empty
// where there are no items, or no such one.
func (p *Pipeline) DescribeItem(w *Desired, k int, upstream *unstructured.Unstructured, in Inputs) string {
	o := &w.Objects[k]
	d := p.Downstreams[o.Downstream]
	item, err := p.itemAt(w, k, p.vars(upstream, in), in, nil)
	if err != nil || item == nil {
		return ""
	}
	text := fmt.Sprintf("item %d", o.item)
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

// RecordedOf returns what a list records of an object; nil for nothing. Of a downstream with several objects the place tells them apart.
func (p *Pipeline) RecordedOf(list []status.Recorded, o *DesiredObject) *status.Recorded {
	for i := range list {
		r := &list[i]
		if r.Name == p.Downstreams[o.Downstream].Name && (!o.Several || o.Wanted && r.Namespace == o.Target.Namespace && r.ObjectName == o.Target.Name) {
			return r
		}
	}
	return nil
}

// recordLeft adds what downstreams with several objects have besides those that are desired: objects that are to go and still exist, and all
// that was recorded while it is not known which objects are desired.
func (p *Pipeline) recordLeft(recorded []status.Recorded, left []Outcome, w *Desired, results []Result, before []status.Recorded) []status.Recorded {
	hidden := map[int]bool{} // of several, the first is recorded: there is one item for the downstream
	for _, o := range left {
		d := p.Downstreams[o.Downstream]
		r := p.recordedOf(d, o.Target, o.UID, o.Live.Hash, string(o.State))
		switch onlyRecorded := o.Live.Unselected || p.isAwaitedPlace(w, o); { // only the record finds it, or says whose it is
		case d.Several() && !isRecordedAt(recorded, d.Name, o.Target):
			recorded = append(recorded, r)
		case !d.Several() && !hidden[d.Index] && onlyRecorded:
			hidden[d.Index] = true
			recorded = append(slices.DeleteFunc(recorded, func(have status.Recorded) bool { return have.Name == d.Name }), r)
		}
	}
	return p.recordUnknown(recorded, w, results, before)
}

// recordUnknown adds what was recorded of downstreams with several objects while it is not known which objects are desired.
func (p *Pipeline) recordUnknown(recorded []status.Recorded, w *Desired, results []Result, before []status.Recorded) []status.Recorded {
	for _, d := range p.Downstreams {
		if !d.Several() || !w.Unknown(d.Index) {
			continue
		}
		objects := w.of(d.Index)
		state := results[w.First(d.Index)+len(objects)-1].Outcome.State // those that are not known come last
		for _, r := range before {
			if r.Name == d.Name && !isRecordedAt(recorded, d.Name, Ref{Namespace: r.Namespace, Name: r.ObjectName}) {
				if !r.Done() {
					r.State = string(state)
				}
				recorded = append(recorded, r)
			}
		}
	}
	return recorded
}

func isRecordedAt(recorded []status.Recorded, name string, at Ref) bool {
	return slices.ContainsFunc(recorded, func(r status.Recorded) bool {
		return r.Name == name && r.Namespace == at.Namespace && r.ObjectName == at.Name
	})
}

// isAwaitedPlace reports whether another downstream asks for the place of an object that is left over.
func (p *Pipeline) isAwaitedPlace(w *Desired, left Outcome) bool {
	gk := p.Downstreams[left.Downstream].GVK().GroupKind()
	return slices.ContainsFunc(w.Objects, func(o DesiredObject) bool {
		return o.Wanted && o.Err == nil && o.Downstream != left.Downstream && o.Target == left.Target && p.Downstreams[o.Downstream].GVK().GroupKind() == gk
	})
}

// KeyOf tells the items of status.downstreams apart.
func (p *Pipeline) KeyOf(r status.Recorded) string {
	if i := p.indexOf(r.Name); i >= 0 && p.Downstreams[i].Several() {
		return r.Name + " " + Ref{Namespace: r.Namespace, Name: r.ObjectName}.String()
	}
	return r.Name
}

// NameOf tells the objects of a downstream with several apart: by name, or NAMESPACE/NAME if they may stand in other namespaces than the
// upstream's.
func (d *Downstream) NameOf(at Ref) string {
	if d.Config.TargetNamespaces.From == config.NamespacesSame {
		return at.Name
	}
	return at.String()
}

// liveByName is what expressions read as downstreams: the live object of each, or a map of them by NameOf.
func (p *Pipeline) liveByName(results []Result) map[string]any {
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
			out[d.Name].(map[string]any)[d.NameOf(refOf(r.Live))] = r.Live.Kept
		}
	}
	return out
}

// objectFact is the fact about one object.
type objectFact struct {
	status.Fact
	of *DesiredObject
}

// namesShown is how many objects a message names.
const namesShown = 5

// byDownstream makes one fact of those about the objects of a downstream.
func byDownstream(list []objectFact) (facts []status.Fact) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].of.Downstream == list[0].of.Downstream {
			n++
		}
		if list[0].of.Several {
			facts = append(facts, together(list[:n]))
		} else {
			facts = append(facts, list[0].Fact)
		}
		list = list[n:]
	}
	return facts
}

// together is the fact about all objects of a downstream: the worst of them says why, and the message how many are ready.
func together(list []objectFact) status.Fact {
	if unknown := list[0]; unknown.of.itemsUnknown {
		if unknown.Message != "" {
			unknown.Message = "its items are not known: " + unknown.Message
		}
		return unknown.Fact
	}
	name, all := list[0].Name, make([]status.Fact, len(list))
	inSeveral := slices.ContainsFunc(list, func(f objectFact) bool {
		return f.of.Err == nil && f.of.Target.Namespace != list[0].of.Target.Namespace
	})
	for i, f := range list {
		all[i] = f.Fact
		switch {
		case f.of.Err != nil:
			all[i].Name = fmt.Sprintf("item %d", f.of.item)
		case inSeveral:
			all[i].Name = f.of.Target.String()
		default:
			all[i].Name = f.of.Target.Name
		}
	}
	worst := status.Worst(all)
	var waiting []string
	for _, f := range all {
		switch {
		case f.Ready:
		case f.Name == worst.Name && f.Message != "":
			waiting = append([]string{f.Name + " (" + f.Message + ")"}, waiting...)
		default:
			waiting = append(waiting, f.Name)
		}
	}
	n := len(waiting)
	if more := n - namesShown; more > 0 {
		waiting = append(waiting[:namesShown], fmt.Sprintf("%d more", more))
	}
	worst.Name = name
	if n > 0 {
		worst.Message = fmt.Sprintf("%d of %d ready; not ready: %s", len(list)-n, len(list), strings.Join(waiting, ", "))
	} else if worst.Reason == status.ReasonReady {
		worst.Message = ""
	}
	return worst
}
