package engine

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// patched is an object as our fields would have it, where the API server could not be asked. It is a likeness: defaults
// and what admission adds are missing. A Secret's values are masked in differences, and so they are in it.
func patched(before *unstructured.Unstructured, differences []drift.Difference) *unstructured.Unstructured {
	after := before.DeepCopy()
	for _, d := range differences {
		if d.Want == nil {
			fieldpath.Remove(after.Object, d.Path)
			continue
		}
		if fieldpath.Set(after.Object, d.Path, d.Want) != nil {
			add(after.Object, d.Path, d.Want)
		}
	}
	return after
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

func compareChanges(a, b *Change) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Target.Namespace, b.Target.Namespace), cmp.Compare(a.Target.Name, b.Target.Name))
}
