package kinds

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Defined returns a Kind for each served version of a CustomResourceDefinition.
func Defined(crd *apiextensionsv1.CustomResourceDefinition) ([]*Kind, error) {
	names := crd.Spec.Names
	if crd.Spec.Group == "" || names.Kind == "" || names.Plural == "" {
		return nil, fmt.Errorf("spec.group, spec.names.kind and spec.names.plural must be set")
	}
	var found []*Kind
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if !v.Served {
			continue
		}
		gv := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
		k := &Kind{
			GVK:        gv.WithKind(names.Kind),
			GVR:        gv.WithResource(names.Plural),
			Namespaced: IsNamespaced(crd),
			HasStatus:  v.Subresources != nil && v.Subresources.Status != nil,
		}
		s, err := crdSchema(v)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of version %s: %w", v.Name, err)
		}
		k.Schema = s
		found = append(found, k)
	}
	return found, nil
}

// crdSchema converts the schema of one version through the structural schema, which the API server uses to prune,
// default and validate. The API server refuses schemas that are not structural.
func crdSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*spec.Schema, error) {
	_, structural, err := structuralOf(v)
	if err != nil {
		return nil, err
	}
	return Tidy(structural.ToKubeOpenAPI()), nil
}
