package resource

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ClearSystem removes the metadata that only the server sets.
func ClearSystem(u *unstructured.Unstructured) {
	u.SetUID("")
	u.SetCreationTimestamp(metav1.Time{})
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	u.SetSelfLink("")
}

// PrepareUpdate returns u with the fields of the live object that a write to the object, or to its status, does not
// change.
func (r *Resource) PrepareUpdate(u, live *unstructured.Unstructured, sub string) *unstructured.Unstructured {
	u.SetGeneration(live.GetGeneration())
	if sub != "" {
		u = r.statusOnly(u, live)
	} else if r.HasStatus {
		copyField(u.Object, live.Object, "status")
	}
	if r.IsNamespace() {
		copyField(u.Object, live.Object, "spec")
	}
	if r.HasGeneration() && !equality.Semantic.DeepEqual(r.counted(u), r.counted(live)) {
		u.SetGeneration(live.GetGeneration() + 1)
	}
	if u.GetUID() == "" {
		u.SetUID(live.GetUID())
	}
	u.SetCreationTimestamp(live.GetCreationTimestamp())
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		u.SetDeletionTimestamp(deleted)
	}
	if seconds := live.GetDeletionGracePeriodSeconds(); seconds != nil && u.GetDeletionGracePeriodSeconds() == nil {
		u.SetDeletionGracePeriodSeconds(seconds)
	}
	return u
}

// statusOnly returns the live object with the status of u.
func (r *Resource) statusOnly(u, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	if r.Custom == nil {
		out.Object["metadata"] = u.Object["metadata"]
		out.SetLabels(live.GetLabels())
	}
	out.SetManagedFields(u.GetManagedFields())
	copyField(out.Object, u.Object, "status")
	return out
}

// counted returns the part of an object whose changes increase metadata.generation.
func (r *Resource) counted(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "metadata" && (key != "status" || r.Custom != nil && !r.HasStatus) {
			out[key] = value
		}
	}
	return out
}

func copyField(to, from map[string]any, field string) {
	if value, ok := from[field]; ok {
		to[field] = value
		return
	}
	delete(to, field)
}

// pathSegment validates the names of all kinds.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// ValidateNew returns what is wrong with a new object.
func (r *Resource) ValidateNew(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	if r.Custom != nil {
		errs = r.validate(ctx, "", u, nil, validation.ValidateObjectMetaAccessor(u, r.Namespaced,
			validation.NameIsDNSSubdomain, meta))
	} else {
		errs = validation.ValidateObjectMetaAccessor(u, r.Namespaced, r.nameRule(), meta)
		errs = append(errs, validateFinalizers(u, meta)...)
		errs = append(errs, r.validateData(u, nil)...)
	}
	if len(errs) > 0 {
		return errs
	}
	return validation.ValidateObjectMetaAccessor(u, r.Namespaced, pathSegment, meta)
}

// nameRule returns the rule for the names of a built-in kind: a DNS subdomain, apart from the exceptions listed here.
func (r *Resource) nameRule() validation.ValidateNameFunc {
	switch r.GVK.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return validation.NameIsDNSLabel
	case schema.GroupKind{Kind: "Service"}:
		return validation.NameIsDNS1035Label
	}
	if r.GVK.Group == "rbac.authorization.k8s.io" {
		return pathSegment
	}
	return validation.NameIsDNSSubdomain
}

// ValidateUpdate returns what is wrong with a change of an object, or of a subresource.
func (r *Resource) ValidateUpdate(ctx context.Context, sub string, u, live *unstructured.Unstructured) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(u, r.Namespaced, pathSegment, meta)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(u, live, meta)...)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(u, live, meta)...) // each kind's strategy repeats it
	if r.Custom != nil {
		return r.validate(ctx, sub, u, live, errs)
	}
	errs = append(errs, validation.ValidateObjectMetaAccessor(u, r.Namespaced, r.nameRule(), meta)...)
	errs = append(errs, validateFinalizers(u, meta)...)
	return append(errs, r.validateData(u, live)...)
}

// validateFinalizers refuses finalizers of built-in kinds that are neither Kubernetes' own nor have a domain.
func validateFinalizers(u *unstructured.Unstructured, meta *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range u.GetFinalizers() {
		switch name {
		case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes):
		default:
			if !strings.Contains(name, "/") {
				errs = append(
					errs,
					field.Invalid(meta.Child("finalizers").Index(i), name,
						"name is neither a standard finalizer name nor is it fully qualified"),
				)
			}
		}
	}
	return errs
}

// KeepTimes keeps the times in managedFields if nothing else of the object has changed.
func KeepTimes(u, live *unstructured.Unstructured) {
	before, after := live.GetManagedFields(), u.GetManagedFields()
	if len(before) != len(after) || !equality.Semantic.DeepEqual(timeless(before), timeless(after)) {
		return
	}
	same := live.DeepCopy()
	same.SetManagedFields(after)
	if equality.Semantic.DeepEqual(same.Object, u.Object) {
		u.SetManagedFields(before)
	}
}

func timeless(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Time = nil
	}
	return entries
}

// DedupOwners removes duplicate owner references.
func DedupOwners(u *unstructured.Unstructured) {
	owners := u.GetOwnerReferences()
	var once []metav1.OwnerReference
	for _, owner := range owners {
		if !slices.ContainsFunc(once, func(o metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(o, owner) }) {
			once = append(once, owner)
		}
	}
	if len(once) < len(owners) {
		u.SetOwnerReferences(once)
	}
}

// NameOf is the key of an object in the store of its resource.
func NameOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// OrNil makes the setters remove the field if the list is empty.
func OrNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// DeletionFinalizers returns the finalizers of an object when its deletion begins: its own, and the one for orphaning
// its dependents or for deleting them first.
func (r *Resource) DeletionFinalizers(have []string, o *metav1.DeleteOptions) []string {
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	if r.IsNamespace() {
		return have
	}
	add := ""
	switch old := o.OrphanDependents; { //nolint:staticcheck // clients still send it
	case old != nil && *old:
		add = orphan
	case old != nil:
	case o.PropagationPolicy != nil:
		add = map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationOrphan: orphan, metav1.DeletePropagationForeground: foreground,
		}[*o.PropagationPolicy]
	case slices.Contains(have, orphan):
		add = orphan
	case slices.Contains(have, foreground):
		add = foreground
	case r.orphansByDefault():
		add = orphan
	}
	var out []string
	for _, name := range have {
		if name != orphan && name != foreground {
			out = append(out, name)
		}
	}
	if add != "" {
		out = append(out, add)
	}
	if sets.New(out...).Equal(sets.New(have...)) {
		return have
	}
	return out
}

// Equal reports whether two objects would be stored alike.
func Equal(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// Item returns an object as in a list: those of built-in kinds have no apiVersion and kind.
func (r *Resource) Item(u *unstructured.Unstructured) map[string]any {
	if r.Custom != nil || r.GVR == DefinitionsResource {
		return u.Object
	}
	out := map[string]any{}
	for key, value := range u.Object {
		if key != "apiVersion" && key != "kind" {
			out[key] = value
		}
	}
	return out
}

// Blank is an object of a kind with nothing in it.
func Blank(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// ClearStatus removes a status that only the subresource may write; the Go types of built-in kinds keep an empty one.
func (r *Resource) ClearStatus(u *unstructured.Unstructured) {
	if _, ok := u.Object["status"]; ok && r.Custom == nil {
		u.Object["status"] = map[string]any{}
		return
	}
	delete(u.Object, "status")
}

// InitNamespace sets the finalizer and the phase of a new Namespace.
func InitNamespace(r *Resource, u *unstructured.Unstructured) {
	if !r.IsNamespace() {
		return
	}
	u.Object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
	u.Object["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
}

// IsNamespace reports whether the objects are Namespaces.
func (r *Resource) IsNamespace() bool {
	return r.GVK == corev1.SchemeGroupVersion.WithKind("Namespace")
}

// DropEmptyLists makes empty lists of built-in kinds null: they are stored in protobuf, which has none.
func (r *Resource) DropEmptyLists(u *unstructured.Unstructured) {
	if r.Custom == nil && r.GVR != DefinitionsResource {
		dropEmptyLists(u.Object)
	}
}

func dropEmptyLists(object map[string]any) {
	for key, value := range object {
		switch value := value.(type) {
		case map[string]any:
			dropEmptyLists(value)
		case []any:
			if len(value) == 0 {
				object[key] = nil
			}
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					dropEmptyLists(item)
				}
			}
		}
	}
}
