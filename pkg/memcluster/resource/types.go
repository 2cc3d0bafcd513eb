package resource

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// types returns the schemas of every version of the kind, for merges by field managers.
func (r *Resource) types() (managedfields.TypeConverter, error) {
	s, err := r.ReadSchema()
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", r.GVK.Kind, err)
	}
	if r.Custom == nil {
		return managedfields.NewTypeConverter(map[string]*spec.Schema{r.GVK.Version: kinds.ModelOf(r.GVK, s)}, false)
	}
	return kinds.TypeConverter(r.GVK.GroupKind(), r.versions)
}

// unconverted converts and defaults objects for the field managers. A conversion changes only the apiVersion, like
// conversion strategy None; defaults are set elsewhere. versions are those that a custom kind has.
type unconverted struct{ versions []*kinds.Version }

// Convert implements runtime.ObjectConvertor.
func (unconverted) Convert(any, any, any) error {
	return fmt.Errorf("not supported")
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (c unconverted) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u := in.(*unstructured.Unstructured)
	gv, ok := to.(schema.GroupVersion)
	if !ok || gv.String() == u.GetAPIVersion() {
		return u, nil
	}
	if len(c.versions) > 0 && !slices.ContainsFunc(c.versions, func(v *kinds.Version) bool {
		return v.Name == gv.Version
	}) {
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", gv)
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
