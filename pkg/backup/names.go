package backup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Key is where a downstream has its hash: one of the two.
type Key struct {
	Annotation string `json:"annotation,omitempty"`
	Label      string `json:"label,omitempty"`
}

func (k Key) field() (field, name string) {
	if k.Label != "" {
		return "labels", k.Label
	}
	return "annotations", k.Annotation
}

// rename is an operator as the backup knows it, and as its config is now.
type rename struct{ from, to Operator }

// renames pairs the operators of the backup with those that are given: by name, or as the only one that watches a kind.
func (r *Restore) renames() (list []rename) {
	archived := r.Archive.Manifest.Operators
	for _, to := range r.Operators {
		watches := func(o Operator) bool { return o.Upstream == to.Upstream }
		i := slices.IndexFunc(archived, func(o Operator) bool { return watches(o) && o.Name == to.Name })
		if i < 0 && only(archived, watches) && only(r.Operators, watches) {
			i = slices.IndexFunc(archived, watches)
		}
		if i >= 0 {
			list = append(list, rename{archived[i], to})
		}
	}
	return list
}

func only[T any](list []T, is func(T) bool) bool {
	i := slices.IndexFunc(list, is)
	return i >= 0 && !slices.ContainsFunc(list[i+1:], is)
}

// current is the name to use for one in the backup; empty if there is none. A previous name of the config stays: the operator replaces it.
func current[T comparable](from, to []T, name T) (now T, renamed bool) {
	if !slices.Contains(from, name) || slices.Contains(to, name) {
		return name, false
	}
	if len(to) > 0 {
		now = to[0]
	}
	return now, true
}

// each visits the objects of a file as they are to be restored: with the names that the configs use now.
func (p *pass) each(t *target, f *File, visit func(*unstructured.Unstructured) error) error {
	return p.Archive.each(f, func(u *unstructured.Unstructured) error {
		for _, r := range p.renamed {
			r.object(t, u)
		}
		return visit(u)
	})
}

func (r *rename) object(t *target, u *unstructured.Unstructured) {
	if t.Name() == r.from.Upstream {
		r.finalizers(u)
		if r.to.Pause != "" && r.to.Pause != r.from.Pause {
			move(u, Key{Annotation: r.from.Pause}, Key{Annotation: r.to.Pause})
		}
	}
	if !slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(r.from.FieldManagers, e.Manager)
	}) {
		return
	}
	r.managers(u)
	isDownstream := false
	for _, key := range r.from.Hashes {
		isDownstream = isDownstream || hasKey(u, key)
		if now, renamed := current(r.from.Hashes, r.to.Hashes, key); renamed {
			move(u, key, now)
		}
	}
	if !isDownstream {
		return
	}
	for _, name := range r.from.Owners {
		if now, renamed := current(r.from.Owners, r.to.Owners, name); renamed && now != "" {
			move(u, Key{Annotation: name}, Key{Annotation: now})
		}
	}
	r.labels(u)
}

// labels replaces the constant labels, by which an operator selects what it watches.
func (r *rename) labels(u *unstructured.Unstructured) {
	if len(r.from.Labels) == 0 || maps.Equal(r.from.Labels, r.to.Labels) {
		return
	}
	for key, value := range r.from.Labels {
		if _, stays := r.to.Labels[key]; !stays && u.GetLabels()[key] == value {
			without(u, [][]any{{"metadata", "labels", key}})
			setFields(u, r.to.FieldManagers, Key{Label: key}, Key{})
		}
	}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range r.to.Labels {
		if _, ok := labels[key]; !ok {
			setFields(u, r.to.FieldManagers[:min(1, len(r.to.FieldManagers))], Key{}, Key{Label: key})
		}
		labels[key] = value
	}
	u.SetLabels(labels)
}

func (r *rename) finalizers(u *unstructured.Unstructured) {
	var list []string
	for _, name := range u.GetFinalizers() {
		now, renamed := current(r.from.Finalizers, r.to.Finalizers, name)
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
func (r *rename) managers(u *unstructured.Unstructured) {
	entries, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	var list []any
	known := map[string]map[string]any{}
	for _, v := range entries {
		entry, _ := v.(map[string]any)
		manager, _ := entry["manager"].(string)
		if now, renamed := current(r.from.FieldManagers, r.to.FieldManagers, manager); renamed && now != "" {
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

func hasKey(u *unstructured.Unstructured, key Key) bool {
	field, name := key.field()
	_, ok, _ := unstructured.NestedString(u.Object, "metadata", field, name)
	return ok
}

// move renames an annotation or a label, for all managers that own it. Where an object has the new one, too, that one stays.
func move(u *unstructured.Unstructured, from, to Key) {
	field, name := from.field()
	value, ok, _ := unstructured.NestedString(u.Object, "metadata", field, name)
	if !ok {
		return
	}
	without(u, [][]any{{"metadata", field, name}})
	if !hasKey(u, to) {
		field, name = to.field()
		_ = unstructured.SetNestedField(u.Object, value, "metadata", field, name)
	}
	setFields(u, nil, from, to)
}

// setFields moves what managers own; of all managers that own it, or gives it to those that are named. An empty key is none.
func setFields(u *unstructured.Unstructured, managers []string, from, to Key) {
	fromField, fromName := from.field()
	toField, toName := to.field()
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

// noteFinalizers counts finalizers that nobody is known to remove.
func (p *pass) noteFinalizers(t *target, u *unstructured.Unstructured) {
	for _, name := range u.GetFinalizers() {
		ours := func(o Operator) bool { return slices.Contains(o.Finalizers, name) }
		if !IsStandardFinalizer(name) && !slices.ContainsFunc(p.Operators, ours) {
			p.unknownFinalizers[[2]string{t.Name(), name}]++
		}
	}
}

// IsStandardFinalizer reports whether a controller of Kubernetes removes a finalizer.
func IsStandardFinalizer(name string) bool {
	domain, _, hasDomain := strings.Cut(name, "/")
	isOf := func(suffix string) bool { return domain == suffix || strings.HasSuffix(domain, "."+suffix) }
	return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents ||
		hasDomain && (isOf("kubernetes.io") || isOf("k8s.io"))
}

func (p *pass) finalizerNotes() (notes []string) {
	for key, n := range p.unknownFinalizers {
		objects := "1 object has"
		if n > 1 {
			objects = fmt.Sprintf("%d objects have", n)
		}
		notes = append(notes, fmt.Sprintf("%s: %s the finalizer %s, and no config is known whose operator removes it: if its controller does "+
			"not run, the deletion never ends", key[0], objects, key[1]))
	}
	slices.Sort(notes)
	return notes
}
