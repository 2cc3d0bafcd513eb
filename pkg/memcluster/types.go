package memcluster

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// types returns the schemas of every version of the kind, for merges by field managers.
func (r *resource) types() (managedfields.TypeConverter, error) {
	s, err := r.schema()
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", r.GVK.Kind, err)
	}
	models := map[string]*spec.Schema{r.GVK.Version: modelOf(r.GVK, s)}
	if r.custom == nil {
		return managedfields.NewTypeConverter(models, false)
	}
	// A CustomResourceDefinition has no schema of metadata: use that of another kind.
	namespace, err := kinds.BuiltinSchema(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err != nil {
		return nil, fmt.Errorf("reading the schema of metadata: %w", err)
	}
	for _, v := range r.versions {
		model := modelOf(schema.GroupVersionKind{Group: r.GVK.Group, Version: v.Name, Kind: r.GVK.Kind}, v.Schema)
		model.Properties["metadata"] = namespace.Properties["metadata"]
		models[v.Name] = model
	}
	return managedfields.NewTypeConverter(models, false)
}

// modelOf returns a copy of a schema with the x-kubernetes-group-version-kind of the kind.
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

func blank(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// unconverted converts and defaults objects for the field managers. A conversion changes only the apiVersion, like conversion
// strategy None; defaults are set elsewhere.
type unconverted struct{}

// Convert implements runtime.ObjectConvertor.
func (unconverted) Convert(any, any, any) error {
	return fmt.Errorf("not supported")
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (unconverted) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
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
func (unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (unconverted) Default(runtime.Object) {}
