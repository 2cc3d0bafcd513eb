package contents

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// fieldOf is the field of metadata where a key is, and its name there.
func fieldOf(k archive.Key) (field, name string) {
	if k.Label != "" {
		return "labels", k.Label
	}
	return "annotations", k.Annotation
}

// Rename is an operator as the backup knows it, and as its config is now.
type Rename struct{ From, To archive.Operator }

// current is the name to use for one in the backup; empty if there is none. A previous name of the config stays: the
// operator replaces it.
func current[T comparable](from, to []T, name T) (now T, renamed bool) {
	if !slices.Contains(from, name) || slices.Contains(to, name) {
		return name, false
	}
	if len(to) > 0 {
		now = to[0]
	}
	return now, true
}

// Object gives an object of a resource the names of the current config in the place of those in the backup.
func (r *Rename) Object(resource string, u *unstructured.Unstructured) {
	if resource == r.From.Upstream {
		r.finalizers(u)
		if r.To.Pause != "" && r.To.Pause != r.From.Pause {
			move(u, archive.Key{Annotation: r.From.Pause}, archive.Key{Annotation: r.To.Pause})
		}
	}
	if !slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(r.From.FieldManagers, e.Manager)
	}) {
		return
	}
	r.managers(u)
	isDownstream := false
	for _, key := range r.From.Hashes {
		isDownstream = isDownstream || hasKey(u, key)
		if now, renamed := current(r.From.Hashes, r.To.Hashes, key); renamed {
			move(u, key, now)
		}
	}
	if !isDownstream {
		return
	}
	for _, name := range r.From.Owners {
		if now, renamed := current(r.From.Owners, r.To.Owners, name); renamed && now != "" {
			move(u, archive.Key{Annotation: name}, archive.Key{Annotation: now})
		}
	}
	r.labels(u)
}

// labels replaces the constant labels, by which an operator selects what it watches.
func (r *Rename) labels(u *unstructured.Unstructured) {
	if len(r.From.Labels) == 0 || maps.Equal(r.From.Labels, r.To.Labels) {
		return
	}
	for key, value := range r.From.Labels {
		if _, stays := r.To.Labels[key]; !stays && u.GetLabels()[key] == value {
			Without(u, [][]any{{"metadata", "labels", key}})
			setFields(u, r.To.FieldManagers, archive.Key{Label: key}, archive.Key{})
		}
	}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range r.To.Labels {
		if _, ok := labels[key]; !ok {
			setFields(u, r.To.FieldManagers[:min(1, len(r.To.FieldManagers))], archive.Key{}, archive.Key{Label: key})
		}
		labels[key] = value
	}
	u.SetLabels(labels)
}

func (r *Rename) finalizers(u *unstructured.Unstructured) {
	var list []string
	for _, name := range u.GetFinalizers() {
		now, renamed := current(r.From.Finalizers, r.To.Finalizers, name)
		if renamed {
			eachFields(u, func(_ string, metadata map[string]any) {
				if fields, ok := metadata["f:finalizers"].(map[string]any); ok && fields["v:"+quoted(name)] != nil {
					delete(fields, "v:"+quoted(name))
					if now != "" {
						fields["v:"+quoted(now)] = map[string]any{}
					}
				}
			})
		}
		if now != "" && !slices.Contains(list, now) {
			list = append(list, now)
		}
	}
	u.SetFinalizers(list)
}

func quoted(name string) string { return fmt.Sprintf("%q", name) }

// managers renames the field managers, and joins the entries of what is one manager then.
func (r *Rename) managers(u *unstructured.Unstructured) {
	entries, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	var list []any
	known := map[string]map[string]any{}
	for _, v := range entries {
		entry, _ := v.(map[string]any)
		manager, _ := entry["manager"].(string)
		if now, renamed := current(r.From.FieldManagers, r.To.FieldManagers, manager); renamed && now != "" {
			entry["manager"] = now
		}
		id := fmt.Sprint(entry["manager"], "\n", entry["operation"], "\n", entry["subresource"], "\n", entry["apiVersion"])
		if other := known[id]; other != nil {
			other["fieldsV1"] = union(other["fieldsV1"], entry["fieldsV1"])
			continue
		}
		known[id] = entry
		list = append(list, entry)
	}
	_ = unstructured.SetNestedSlice(u.Object, list, "metadata", "managedFields")
}

// union has the fields of both.
func union(a, b any) any {
	left, _ := a.(map[string]any)
	right, _ := b.(map[string]any)
	if left == nil {
		return b
	}
	for key, value := range right {
		left[key] = union(left[key], value)
	}
	return left
}

func hasKey(u *unstructured.Unstructured, key archive.Key) bool {
	field, name := fieldOf(key)
	_, ok, _ := unstructured.NestedString(u.Object, "metadata", field, name)
	return ok
}

// move renames an annotation or a label, for all managers that own it. Where an object has the new one, too, that one
// stays.
func move(u *unstructured.Unstructured, from, to archive.Key) {
	field, name := fieldOf(from)
	value, ok, _ := unstructured.NestedString(u.Object, "metadata", field, name)
	if !ok {
		return
	}
	Without(u, [][]any{{"metadata", field, name}})
	if !hasKey(u, to) {
		field, name = fieldOf(to)
		_ = unstructured.SetNestedField(u.Object, value, "metadata", field, name)
	}
	setFields(u, nil, from, to)
}

// setFields moves what managers own; of all managers that own it, or gives it to those that are named. An empty key is
// none.
func setFields(u *unstructured.Unstructured, managers []string, from, to archive.Key) {
	fromField, fromName := fieldOf(from)
	toField, toName := fieldOf(to)
	eachFields(u, func(manager string, metadata map[string]any) {
		below, _ := metadata["f:"+fromField].(map[string]any)
		_, owns := below["f:"+fromName]
		if owns {
			if delete(below, "f:"+fromName); len(below) == 0 {
				delete(metadata, "f:"+fromField)
			}
		}
		if toName == "" || !owns && !slices.Contains(managers, manager) {
			return
		}
		if _, ok := metadata["f:"+toField].(map[string]any); !ok {
			metadata["f:"+toField] = map[string]any{}
		}
		metadata["f:"+toField].(map[string]any)["f:"+toName] = map[string]any{}
	})
}

// eachFields visits the fields of metadata that a manager owns.
func eachFields(u *unstructured.Unstructured, visit func(manager string, metadata map[string]any)) {
	meta, _ := u.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, v := range entries {
		entry, _ := v.(map[string]any)
		manager, _ := entry["manager"].(string)
		fields, _ := entry["fieldsV1"].(map[string]any)
		if metadata, ok := fields["f:metadata"].(map[string]any); ok && entry["subresource"] == nil {
			visit(manager, metadata)
		}
	}
}
