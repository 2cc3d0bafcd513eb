package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Extras returns the sorted paths of keys in exclusive fields that are live but not desired, to be set to null. It
// descends into maps, but not into lists, because a merge patch cannot remove an item.
func Extras(live *unstructured.Unstructured, desired map[string]any, exclusive []fieldpath.Path) []fieldpath.Path {
	var out []fieldpath.Path
	for _, p := range exclusive {
		have, ok := fieldpath.Get(live.Object, p)
		if !ok {
			continue
		}
		want, _ := fieldpath.Get(desired, p)
		extras(have, want, p, &out)
	}
	slices.SortFunc(out, fieldpath.Compare)
	return out
}

func extras(have, want any, at fieldpath.Path, out *[]fieldpath.Path) {
	haveMap, ok := have.(map[string]any)
	if !ok {
		return
	}
	wantMap, ok := want.(map[string]any)
	if !ok && want != nil {
		return // the apply replaces it
	}
	for k, value := range haveMap {
		wanted, ok := wantMap[k]
		if !ok {
			*out = append(*out, at.Child(k))
			continue
		}
		extras(value, wanted, at.Child(k), out)
	}
}

// extra reports whether an exclusive field has keys that our entry does not own.
func (v *View) extra(obj map[string]any, owned managed.Fields, es []managed.Entry, our int) bool {
	for _, p := range v.Exclusive {
		value, ok := fieldpath.Get(obj, p)
		if !ok {
			continue
		}
		node, holding := owned.Follow(obj, p)
		if unowned(value, node, holding != managed.HoldsNothing) {
			return true
		}
		if holding == managed.HoldsHere && node.IsLeaf() && othersWithin(obj, p, es, our) {
			return true
		}
	}
	return false
}

// unowned reports whether value has a key, itself or in maps below, that node does not own.
func unowned(value any, node managed.Fields, known bool) bool {
	m, ok := value.(map[string]any)
	if !ok || known && node.IsLeaf() {
		return false
	}
	for k, below := range m {
		next, ok := node.Field(k)
		if !ok || unowned(below, next, true) {
			return true
		}
	}
	return false
}

// othersWithin reports whether another manager owns something below p: then what looks like an atomic map of ours is a
// map that we applied empty.
func othersWithin(obj map[string]any, p fieldpath.Path, es []managed.Entry, our int) bool {
	for i := range es {
		if i == our {
			continue
		}
		if node, holding := es[i].Owned.Follow(obj, p); holding == managed.HoldsHere && !node.IsLeaf() {
			return true
		}
	}
	return false
}
