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

// GetDeletionTimestamp returns some time if the object has a deletionTimestamp.
func (l *Live) GetDeletionTimestamp() *v1.Time {
	if l.Deleting {
		return &v1.Time{} // the time is not kept
	}
	return nil
}

// NoMetadata is embedded in objects of a cache that keep few fields of their metadata. Of the other fields that
// metav1.Object has, it says that they are empty, and setting them changes nothing.
type NoMetadata struct{}

func (NoMetadata) GetGeneration() int64                      { return 0 }
func (NoMetadata) SetGeneration(int64)                       {}
func (NoMetadata) GetOwnerReferences() []v1.OwnerReference   { return nil }
func (NoMetadata) GetGenerateName() string                   { return "" }
func (NoMetadata) SetGenerateName(string)                    {}
func (NoMetadata) GetSelfLink() string                       { return "" }
func (NoMetadata) SetSelfLink(string)                        {}
func (NoMetadata) GetCreationTimestamp() v1.Time             { return v1.Time{} }
func (NoMetadata) SetCreationTimestamp(v1.Time)              {}
func (NoMetadata) GetDeletionTimestamp() *v1.Time            { return nil }
func (NoMetadata) SetDeletionTimestamp(*v1.Time)             {}
func (NoMetadata) GetDeletionGracePeriodSeconds() *int64     { return nil }
func (NoMetadata) SetDeletionGracePeriodSeconds(*int64)      {}
func (NoMetadata) GetLabels() map[string]string              { return nil }
func (NoMetadata) SetLabels(map[string]string)               {}
func (NoMetadata) GetAnnotations() map[string]string         { return nil }
func (NoMetadata) SetAnnotations(map[string]string)          {}
func (NoMetadata) GetFinalizers() []string                   { return nil }
func (NoMetadata) SetFinalizers([]string)                    {}
func (NoMetadata) SetOwnerReferences([]v1.OwnerReference)    {}
func (NoMetadata) GetManagedFields() []v1.ManagedFieldsEntry { return nil }
func (NoMetadata) SetManagedFields([]v1.ManagedFieldsEntry)  {}
