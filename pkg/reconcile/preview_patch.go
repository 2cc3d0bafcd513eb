package reconcile

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// afterTakeOver puts, for a survey, in the place of the answer to an apply what the API server would store after a takeover
// and that apply: dry runs do not add up, so that the apply's knows nothing of the takeover. What is taken over and no
// longer wanted goes, and what the API server fills in then comes back, whoever owned it. An apply that is refused may be
// so for the sake of what would have gone by then. Any other answer it returns as it is.
func (r *reconciliation) afterTakeOver(ctx context.Context, o pipeline.Outcome, taken *unstructured.Unstructured, doc map[string]any,
	resp *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if taken == nil || !r.client.Dry() {
		return resp, err
	}
	manager := r.Pipeline.Config.Conventions.FieldManager
	list := slices.DeleteFunc(drift.Changed(doc, taken, &r.Pipeline.Downstreams[o.Downstream].View), func(d drift.Difference) bool {
		return d.Want == nil && d.Manager != manager // another one owns it too, so that it stays
	})
	switch {
	case err == nil:
		list = slices.DeleteFunc(list, func(d drift.Difference) bool { return d.Want != nil }) // which the answer has
		if len(list) == 0 {
			return resp, nil
		}
		return r.client.Stored(ctx, r.target(o.Downstream, o.Target), patched(resp, list, doc))
	case apply.Classify(err).Reason == apply.ReasonRejected:
		return r.client.Stored(ctx, r.target(o.Downstream, o.Target), patched(taken, list, doc))
	}
	return resp, err
}

// patched is an object as our fields would have it, where the API server could not be asked. It is a likeness: defaults
// and what admission adds are missing. Values are those of doc, what is wanted, since differences mask a Secret's; maps
// that end up empty go, unless doc has them.
func patched(before *unstructured.Unstructured, differences []drift.Difference, doc map[string]any) *unstructured.Unstructured {
	after := before.DeepCopy()
	for _, d := range differences {
		if d.Want == nil {
			continue
		}
		want, ok := fieldpath.Get(doc, d.Path)
		if !ok {
			want = d.Want // of an item that stands elsewhere in doc
		}
		if fieldpath.Set(after.Object, d.Path, want) != nil {
			add(after.Object, d.Path, want)
		}
	}
	for _, d := range slices.Backward(differences) { // the items of lists from the last
		if d.Want == nil {
			remove(after.Object, d.Path, doc)
		}
	}
	return after
}

// remove takes a field out of an object, and the maps that were there for its sake.
func remove(object map[string]any, path fieldpath.Path, doc map[string]any) {
	for fieldpath.Remove(object, path) && len(path) > 1 {
		path = path[:len(path)-1]
		left, _ := fieldpath.Get(object, path)
		_, wanted := fieldpath.Get(doc, path)
		if m, ok := left.(map[string]any); !ok || len(m) > 0 || wanted {
			return
		}
	}
}

// add appends an item that a list does not have yet.
func add(object map[string]any, path fieldpath.Path, item any) {
	parent := path[:len(path)-1]
	list, _ := fieldpath.Get(object, parent)
	items, ok := list.([]any)
	if !ok && list != nil || len(parent) == 0 {
		return
	}
	// What cannot be set is not shown; the difference itself is told all the same.
	_ = fieldpath.Set(object, parent, append(items[:len(items):len(items)], item))
}

// CompareChanges orders changes by their downstream in the config, and by namespace and name.
func CompareChanges(a, b *Change) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Target.Namespace, b.Target.Namespace), cmp.Compare(a.Target.Name, b.Target.Name))
}
