package drift

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Project returns the live values of the fields that manager owns by server-side apply (operation Apply, no
// subresource), and false if it has no such entry. Where the API server normalized nothing, that is what manager
// applied, less apiVersion, kind and the object's identity, which managedFields never has.
//
// Items of lists keep the live order. A list item has the fields that are owned of it and no others: a key that the API
// server defaulted (a port's protocol) stands in fieldsV1 as part of the item's name, but not in the projection. A field
// that is owned yet absent (an empty list or string that the API server dropped) is nil here. Where a place is owned as a
// whole, its whole live value is.
//
// The result shares values with u and must not be changed. Its size is bounded by u's, managedFields included, and so, but
// for sorting, is the time it takes.
func Project(u *unstructured.Unstructured, manager string) (projection map[string]any, ok bool) {
	owned, ok := ours(u, manager)
	if !ok {
		return nil, false
	}
	return projector{nils: true}.root(u.Object, owned), true
}

// projector builds projections. nils: a field that is owned yet absent is nil, else it is left out.
type projector struct{ nils bool }

func (p projector) root(obj map[string]any, owned fields) map[string]any {
	if owned.leaf() {
		return map[string]any{} // nobody owns an object as a whole
	}
	return p.fields(obj, owned)
}

func (p projector) value(live any, owned fields) any {
	if owned.leaf() {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		return p.fields(live, owned)
	case []any:
		return p.list(live, owned)
	default:
		return live // fields below a scalar: forged, or the value has changed its type
	}
}

func (p projector) fields(live map[string]any, owned fields) map[string]any {
	out := make(map[string]any, len(owned))
	for key := range owned {
		name, isField := cutField(key)
		below, ok := owned.below(key)
		if !isField || !ok {
			continue
		}
		if value, ok := live[name]; ok {
			out[name] = p.value(value, below)
		} else if p.nils {
			out[name] = nil
		}
	}
	return out
}

func (p projector) list(live []any, owned fields) []any {
	items := owned.items()
	out := make([]any, 0, min(len(live), len(owned)))
	for i, item := range live {
		if below, ok := items.of(item, i); ok {
			out = append(out, p.value(item, below))
		}
	}
	return out
}

// Desired returns the digest that the projection of the live object has, once full was applied and the API server
// changed nothing of it. full is what is about to be applied, canonical, with conventions, owner marks and the hash.
// What managedFields never has is left out (apiVersion, kind, and the metadata that identifies the object), and so are
// v's initial fields.
func Desired(full map[string]any, v *View) Sum {
	return Digest(shape(full, v.Initial))
}

// identity is the metadata that the API server keeps out of every manager's fields.
var identity = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"}

// shape returns full as a projection has it. It shares values with full.
func shape(full map[string]any, initial []fieldpath.Path) map[string]any {
	out := make(map[string]any, len(full))
	for k, value := range full {
		if k != "apiVersion" && k != "kind" {
			out[k] = value
		}
	}
	if metadata, ok := full["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(metadata))
		for k, value := range metadata {
			kept[k] = value
		}
		for _, k := range identity {
			delete(kept, k)
		}
		if out["metadata"] = kept; len(kept) == 0 {
			delete(out, "metadata")
		}
	}
	return Without(out, initial)
}

// projection is what P is the digest of, where all that is owned is there: the projection, with exclusive fields whole and
// without initial fields.
func (v *View) projection(obj map[string]any, owned fields) map[string]any {
	out := projector{}.root(obj, owned)
	for _, p := range v.Exclusive {
		value, ok := fieldpath.Get(obj, p)
		if ok {
			out = with(out, p, value)
		}
	}
	return Without(out, v.Initial)
}
