package kinds

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TypeConverter has the schemas of the versions of a custom kind, for the fields that managers own.
func TypeConverter(kind schema.GroupKind, versions []*Version) (managedfields.TypeConverter, error) {
	// A CustomResourceDefinition has no schema of metadata: use that of another kind.
	namespace, err := BuiltinSchema(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err != nil {
		return nil, fmt.Errorf("reading the schema of metadata: %w", err)
	}
	models := map[string]*spec.Schema{}
	for _, v := range versions {
		model := ModelOf(kind.WithVersion(v.Name), v.Schema)
		model.Properties["metadata"] = namespace.Properties["metadata"]
		models[v.Name] = model
	}
	return managedfields.NewTypeConverter(models, false)
}

// ModelOf returns a copy of a schema with the x-kubernetes-group-version-kind of the kind.
func ModelOf(gvk schema.GroupVersionKind, s *spec.Schema) *spec.Schema {
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
