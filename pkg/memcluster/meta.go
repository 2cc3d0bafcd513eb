package memcluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// clearSystem removes the metadata that only the server sets.
func clearSystem(u *unstructured.Unstructured) {
	u.SetUID("")
	u.SetCreationTimestamp(metav1.Time{})
	u.SetDeletionTimestamp(nil)
	u.SetDeletionGracePeriodSeconds(nil)
	u.SetSelfLink("")
}

// prepareUpdate returns u with the fields of the live object that a write to the object, or to its status, does not change.
func (r *resource) prepareUpdate(u, live *unstructured.Unstructured, sub string) *unstructured.Unstructured {
	u.SetGeneration(live.GetGeneration())
	if sub != "" {
		u = r.statusOnly(u, live)
	} else if r.HasStatus {
		copyField(u.Object, live.Object, "status")
	}
	if r.isNamespace() {
		copyField(u.Object, live.Object, "spec")
	}
	if r.hasGeneration() && !equality.Semantic.DeepEqual(r.counted(u), r.counted(live)) {
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
func (r *resource) statusOnly(u, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	if r.custom == nil {
		out.Object["metadata"] = u.Object["metadata"]
		out.SetLabels(live.GetLabels())
	}
	out.SetManagedFields(u.GetManagedFields())
	copyField(out.Object, u.Object, "status")
	return out
}

// counted returns the part of an object whose changes increase metadata.generation.
func (r *resource) counted(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "metadata" && (key != "status" || r.custom != nil && !r.HasStatus) {
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

func validateNew(call *call, u *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	if r := call.resource; r.custom != nil {
		errs = call.validate(u, nil, validation.ValidateObjectMetaAccessor(u, r.Namespaced, validation.NameIsDNSSubdomain, meta))
	} else {
		errs = validation.ValidateObjectMetaAccessor(u, r.Namespaced, r.nameRule(), meta)
		errs = append(errs, validateFinalizers(u, meta)...)
		errs = append(errs, r.validateData(u, nil)...)
	}
	if len(errs) > 0 {
		return errs
	}
	return validation.ValidateObjectMetaAccessor(u, call.resource.Namespaced, pathSegment, meta)
}

// nameRule returns the rule for the names of a built-in kind: a DNS subdomain, apart from the exceptions listed here.
func (r *resource) nameRule() validation.ValidateNameFunc {
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

func validateUpdate(call *call, u, live *unstructured.Unstructured) field.ErrorList {
	r, meta := call.resource, field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(u, r.Namespaced, pathSegment, meta)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(u, live, meta)...)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(u, live, meta)...) // each kind's strategy repeats it
	if r.custom != nil {
		return call.validate(u, live, errs)
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
					field.Invalid(meta.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"),
				)
			}
		}
	}
	return errs
}

// keepTimes keeps the times in managedFields if nothing else of the object has changed.
func keepTimes(u, live *unstructured.Unstructured) {
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

// dedupOwners removes duplicate owner references.
func dedupOwners(u *unstructured.Unstructured) {
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
