package offline

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// PlaceholderUID is the uid of a custom resource from a file, because only an API server assigns one.
const PlaceholderUID = "00000000-0000-0000-0000-000000000000"

// Complete returns a copy of an upstream with what the API server would add: namespace, uid, and the defaults of its
// schema if known. An empty namespace means default. It returns an error if the namespace contradicts the object or its
// scope. A row gets the name and uid that follow from its key.
func Complete(
	object *unstructured.Unstructured, p *desired.Renderer, namespace string,
) (*unstructured.Unstructured, error) {
	if p.HasRows() {
		return p.RowOf(object.DeepCopy())
	}
	object, kind := object.DeepCopy(), &p.Upstream
	own := object.GetNamespace()
	switch {
	case !kind.Namespaced && own != "":
		return nil, fmt.Errorf("metadata.namespace is %q, but a %s has none: leave it out", own, kind.GVK.Kind)
	case kind.Namespaced && own == "":
		if namespace == "" {
			namespace = "default"
		}
		object.SetNamespace(namespace)
	case kind.Namespaced && namespace != "" && own != namespace:
		return nil, fmt.Errorf("metadata.namespace is %q, but --namespace is %q: leave one of them out", own, namespace)
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(PlaceholderUID))
	}
	if kind.Schema != nil && !kinds.IsBuiltin(kind.GVK.GroupKind()) {
		FillDefaults(object.Object, kind.Schema)
	}
	return object, nil
}
