package memcluster

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// types say which lists of a kind are keyed and which maps atomic, at every version of the kind.
func (r *resource) types() (managedfields.TypeConverter, error) {
	if r.custom != nil {
		models := map[string]*spec.Schema{}
		for version, s := range r.custom.schemas {
			models[version] = modelOf(schema.GroupVersionKind{Group: r.GVK.Group, Version: version, Kind: r.GVK.Kind}, s)
			models[version].Properties["metadata"] = metadataSchema()
		}
		return managedfields.NewTypeConverter(models, false)
	}
	s, err := r.schema()
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", r.GVK.Kind, err)
	}
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"": modelOf(r.GVK, s)}, false)
}

// modelOf is a copy of a schema that says which kind it is of.
func modelOf(gvk schema.GroupVersionKind, s *spec.Schema) *spec.Schema {
	whole := *s
	whole.Properties = maps.Clone(s.Properties)
	if whole.Properties == nil {
		whole.Properties = map[string]spec.Schema{}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		whole.Properties[name] = *spec.StringProperty()
	}
	whole.Extensions = maps.Clone(s.Extensions)
	whole.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	})
	return &whole
}

// metadataSchema is the schema of metadata, which a CustomResourceDefinition does not have, as far as server-side apply asks
// for it.
func metadataSchema() spec.Schema {
	text := spec.StringProperty
	owner := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"apiVersion": *text(), "kind": *text(), "name": *text(), "uid": *text(),
		"controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	}}}
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	keyed := spec.ArrayProperty(owner)
	keyed.AddExtension("x-kubernetes-list-type", "map")
	keyed.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	set := spec.ArrayProperty(text())
	set.AddExtension("x-kubernetes-list-type", "set")
	m := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"labels": *spec.MapProperty(text()), "annotations": *spec.MapProperty(text()),
		"ownerReferences": *keyed, "finalizers": *set,
		"generation": *spec.Int64Property(), "deletionGracePeriodSeconds": *spec.Int64Property(),
	}}}
	for _, name := range []string{"name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
		"selfLink"} {
		m.Properties[name] = *text()
	}
	anything := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	anything.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	m.Properties["managedFields"] = *spec.ArrayProperty(anything)
	return m
}

func blank(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// asIs is what the field managers convert and default by. A conversion changes the version alone, as that of a
// CustomResourceDefinition without a webhook; defaults are filled in elsewhere.
type asIs struct{}

// Convert implements runtime.ObjectConvertor.
func (asIs) Convert(any, any, any) error {
	return fmt.Errorf("not supported")
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (asIs) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u := in.(*unstructured.Unstructured)
	gv, ok := to.(schema.GroupVersion)
	if !ok || gv.String() == u.GetAPIVersion() {
		return u, nil
	}
	content := maps.Clone(u.Object)
	content["apiVersion"] = gv.String()
	return &unstructured.Unstructured{Object: content}, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (asIs) Default(runtime.Object) {}
