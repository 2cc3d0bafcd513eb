package act

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// afterTakeOver is for dry runs: it replaces the response to an apply by what the API server would store after a
// takeover and that apply. Dry runs do not add up, so the apply's response knows nothing of the takeover. Fields that
// are taken over and not desired are removed, and what the API server then defaults comes back, whoever owned it. An
// apply may also be refused only because of fields that would be removed by then. Any other response is returned as it
// is.
func (x *action) afterTakeOver(ctx context.Context, taken *unstructured.Unstructured, doc map[string]any,
	resp *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if taken == nil || !x.Client.Dry() {
		return resp, err
	}
	manager := x.Settings.Config.Conventions.FieldManager
	list := withoutCoOwned(drift.Changed(doc, taken, &x.d.View), manager)
	switch {
	case err == nil:
		list = slices.DeleteFunc(list, func(d drift.Difference) bool { return d.Want != nil }) // which the answer has
		if len(list) == 0 {
			return resp, nil
		}
		return x.Client.WouldStore(ctx, x.target, Patched(resp, list, doc))
	case apply.Classify(err).Reason == apply.ReasonRejected, apply.Classify(err).Reason == apply.ReasonDenied:
		return x.Client.WouldStore(ctx, x.target, Patched(taken, list, doc))
	}
	return resp, err
}

// withoutCoOwned drops removals of fields that another manager owns too, so that they stay.
func withoutCoOwned(list []drift.Difference, manager string) []drift.Difference {
	return slices.DeleteFunc(list, func(d drift.Difference) bool { return d.Want == nil && d.Manager != manager })
}

// Patched is an object with our fields as desired, if the API server could not be asked. It is an approximation:
// defaults and what admission adds are missing. Values come from doc, since differences mask a Secret's; maps that
// become empty are removed, unless doc has them.
func Patched(
	before *unstructured.Unstructured, differences []drift.Difference, doc map[string]any,
) *unstructured.Unstructured {
	after := before.DeepCopy()
	for _, d := range differences {
		if d.Want == nil {
			continue
		}
		want, ok := fieldpath.Get(doc, d.Path)
		if !ok {
			want = d.Want // of an item at another index in doc
		}
		if d.Have == nil {
			have, _ := fieldpath.Get(after.Object, d.Path)
			want = Merged(have, want)
		}
		if fieldpath.Set(after.Object, d.Path, want) != nil {
			addItem(after.Object, d.Path, want)
		}
	}
	for _, d := range slices.Backward(differences) { // the items of lists from the last
		if d.Want == nil {
			removeField(after.Object, d.Path, doc)
		}
	}
	return after
}

// Merged is what an apply of a value makes of one of which we own nothing: what others have in a map stays.
func Merged(have, want any) any {
	theirs, isMap := have.(map[string]any)
	ours, both := want.(map[string]any)
	if !isMap || !both {
		return want
	}
	out := maps.Clone(theirs)
	for key, value := range ours {
		out[key] = Merged(theirs[key], value)
	}
	return out
}

// removeField removes a field from an object, and the maps that become empty.
func removeField(object map[string]any, path fieldpath.Path, doc map[string]any) {
	for fieldpath.Remove(object, path) && len(path) > 1 {
		path = path[:len(path)-1]
		left, _ := fieldpath.Get(object, path)
		_, wanted := fieldpath.Get(doc, path)
		if m, ok := left.(map[string]any); !ok || len(m) > 0 || wanted {
			return
		}
	}
}

// addItem appends an item to a list.
func addItem(object map[string]any, path fieldpath.Path, item any) {
	parent := path[:len(path)-1]
	list, _ := fieldpath.Get(object, parent)
	items, ok := list.([]any)
	if !ok && list != nil || len(parent) == 0 {
		return
	}
	// What cannot be set is not shown; the difference itself is reported nevertheless.
	_ = fieldpath.Set(object, parent, append(items[:len(items):len(items)], item))
}
