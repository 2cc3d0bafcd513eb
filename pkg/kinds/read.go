package kinds

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// DefinitionResource is the resource of CustomResourceDefinitions.
var DefinitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// ReadDefinition reads a CustomResourceDefinition from an API server.
func ReadDefinition(
	ctx context.Context, client dynamic.Interface, name string,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	u, err := client.Resource(DefinitionResource).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
	}
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	return crd, nil
}

// IsNamespaced is false for the definition of a cluster-scoped kind.
func IsNamespaced(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Scope == apiextensionsv1.NamespaceScoped
}

// StoredVersion is the version in which objects are stored; empty for a definition that no API server takes.
func StoredVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
