package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// right is what requests need. Namespace is empty for all.
type right struct {
	verb        string
	resource    schema.GroupVersionResource
	subresource string
	namespace   string
}

func (r right) String() string {
	text := r.verb + " " + r.resource.GroupResource().String()
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// RightsError names the rights that the user lacks.
type RightsError []string

func (e RightsError) Error() string {
	return "rights are missing: " + strings.Join(e, "; ") + ": grant them with a Role or ClusterRole"
}

// rightsError returns a RightsError, or nil if the user has all rights. A right in all namespaces is asked for before
// one in some.
func rightsError(ctx context.Context, client dynamic.Interface, rights []right) error {
	var missing RightsError
	allowed := map[right]bool{}
	may := func(r right) (bool, error) {
		ok, asked := allowed[r]
		if asked {
			return ok, nil
		}
		ok, err := allows(ctx, client, r)
		allowed[r] = ok
		return ok, err
	}
	for _, r := range rights {
		everywhere := r
		everywhere.namespace = ""
		ok, err := may(everywhere)
		if err == nil && !ok && r.namespace != "" {
			ok, err = may(r)
		}
		if err != nil {
			return fmt.Errorf("asking the API server for the right to %s: %w", r, err)
		}
		if text := r.String(); !ok && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return missing
}

// allows asks whether the user has a right. If the API server does not answer such questions, the requests themselves
// will tell.
func allows(ctx context.Context, client dynamic.Interface, r right) (bool, error) {
	attributes := map[string]any{"verb": r.verb, "group": r.resource.Group, "resource": r.resource.Resource,
		"subresource": r.subresource, "namespace": r.namespace}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authorization.k8s.io/v1",
		"kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": attributes}}}
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1",
		Resource: "selfsubjectaccessreviews"}
	answer, err := client.Resource(reviews).Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}

var (
	definitions = kinds.DefinitionResource
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)
