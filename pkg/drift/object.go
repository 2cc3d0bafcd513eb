package drift

import (
	"slices"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	_ runtime.Object    = (*Live)(nil)
	_ v1.Object         = (*Live)(nil)
	_ schema.ObjectKind = (*Live)(nil)
)

// GetObjectKind returns l itself.
func (l *Live) GetObjectKind() schema.ObjectKind { return l }

// GroupVersionKind returns the object's kind.
func (l *Live) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(l.APIVersion, l.Kind)
}

// SetGroupVersionKind changes the object's kind.
func (l *Live) SetGroupVersionKind(gvk schema.GroupVersionKind) {
	l.APIVersion, l.Kind = gvk.ToAPIVersionAndKind()
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *Live) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := *l
	out.Owners = slices.Clone(l.Owners)
	out.Initial = slices.Clone(l.Initial)
	for i := range out.Initial {
		out.Initial[i].Value = runtime.DeepCopyJSONValue(out.Initial[i].Value)
	}
	out.Kept = runtime.DeepCopyJSON(l.Kept)
	return &out
}

// Fields of metav1.Object that a Live has.

func (l *Live) GetNamespace() string              { return l.Namespace }
func (l *Live) SetNamespace(namespace string)     { l.Namespace = namespace }
func (l *Live) GetName() string                   { return l.Name }
func (l *Live) SetName(name string)               { l.Name = name }
func (l *Live) GetUID() types.UID                 { return l.UID }
func (l *Live) SetUID(uid types.UID)              { l.UID = uid }
func (l *Live) GetResourceVersion() string        { return l.ResourceVersion }
func (l *Live) SetResourceVersion(version string) { l.ResourceVersion = version }
func (l *Live) GetGeneration() int64              { return l.Generation }
func (l *Live) SetGeneration(generation int64)    { l.Generation = generation }

// GetOwnerReferences returns the known parts of the owner references.
func (l *Live) GetOwnerReferences() []v1.OwnerReference {
	out := make([]v1.OwnerReference, 0, len(l.Owners))
	for _, o := range l.Owners {
		ref := v1.OwnerReference{Kind: o.Kind, Name: o.Name, UID: o.UID}
		if o.Controller {
			ref.Controller = &o.Controller
		}
		out = append(out, ref)
	}
	return out
}

// Fields that a Live does not have are empty, and setting them changes nothing.

func (l *Live) GetGenerateName() string       { return "" }
func (l *Live) SetGenerateName(string)        {}
func (l *Live) GetSelfLink() string           { return "" }
func (l *Live) SetSelfLink(string)            {}
func (l *Live) GetCreationTimestamp() v1.Time { return v1.Time{} }
func (l *Live) SetCreationTimestamp(v1.Time)  {}
func (l *Live) GetDeletionTimestamp() *v1.Time {
	if l.Deleting {
		return &v1.Time{} // the time is not kept
	}
	return nil
}
func (l *Live) SetDeletionTimestamp(*v1.Time)             {}
func (l *Live) GetDeletionGracePeriodSeconds() *int64     { return nil }
func (l *Live) SetDeletionGracePeriodSeconds(*int64)      {}
func (l *Live) GetLabels() map[string]string              { return nil }
func (l *Live) SetLabels(map[string]string)               {}
func (l *Live) GetAnnotations() map[string]string         { return nil }
func (l *Live) SetAnnotations(map[string]string)          {}
func (l *Live) GetFinalizers() []string                   { return nil }
func (l *Live) SetFinalizers([]string)                    {}
func (l *Live) SetOwnerReferences([]v1.OwnerReference)    {}
func (l *Live) GetManagedFields() []v1.ManagedFieldsEntry { return nil }
func (l *Live) SetManagedFields([]v1.ManagedFieldsEntry)  {}
