package drift

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Project returns the live values of the fields that manager owns by server-side apply (operation Apply, not a
// subresource), and false if it has no such entry. If the API server normalized nothing, that is what manager applied,
// without apiVersion, kind and the object's identity, which are never in managedFields.
//
// List items are in live order and have only the fields that are owned: a key that the API server defaulted (a port's
// protocol) is part of the item's name in fieldsV1, but not in the projection. A field that is owned but absent (an
// empty list or string that the API server dropped) is nil here. A place that is owned as a whole has its whole live
// value.
//
// The result shares values with u and must not be changed. Its size is bounded by the size of u, managedFields
// included, and so is the time, apart from sorting.
func Project(u *unstructured.Unstructured, manager string) (projection map[string]any, ok bool) {
	owned, ok := managed.Owned(u, manager)
	if !ok {
		return nil, false
	}
	return owned.Projection(u.Object, true), true
}

// Desired returns the digest that the projection of the live object will have after full is applied, if the API server
// normalizes nothing. full is the canonical object with conventions, owner marks and the hash. It ignores what is not
// part of P, and what is never in managedFields (apiVersion, kind and the identifying metadata).
func Desired(full map[string]any, v *View) canonical.Sum {
	return canonical.ExactDigest(shape(full, v.leftOut()))
}

// identity is the metadata that is in no manager's fields.
var identity = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
	"selfLink", "managedFields"}

// shape returns full in the shape of a projection. It shares values with full.
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
	return fieldpath.Without(out, initial)
}

// projection returns what P is the digest of, if nothing owned is absent: the projection with whole exclusive fields,
// and without initial fields and those aside.
func (v *View) projection(obj map[string]any, owned managed.Fields) map[string]any {
	out := owned.Projection(obj, false)
	for _, p := range v.Exclusive {
		value, ok := fieldpath.Get(obj, p)
		if ok {
			out = fieldpath.With(out, p, value)
		}
	}
	return fieldpath.Without(out, v.leftOut())
}

// sum returns P: the digest of the projection and of what the manager owns and is absent. An empty value that the API
// server does not store (args: []) stays owned; a writer that sets it later removes it from our entry, which changes P.
// If nothing owned is absent, P is ExactDigest(v.projection(obj, owned)), which is built only if fields must be added
// or removed. Only then can it equal Desired.
func (v *View) sum(obj map[string]any, owned managed.Fields) canonical.Sum {
	if owned.IsLeaf() || len(v.Exclusive)+len(v.Initial)+len(v.Aside) == 0 {
		return owned.Sum(obj)
	}
	values := []any{v.projection(obj, owned)}
	if absent := owned.Missing(obj, v.leftOut()); len(absent) > 0 {
		values = append(values, map[string]any(absent))
	}
	return canonical.ExactDigest(values...)
}
