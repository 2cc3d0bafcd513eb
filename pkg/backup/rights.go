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

// rightsError returns a RightsError, or nil if the user has all rights. A right in all namespaces is asked for before one in some.
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

// allows asks whether the user has a right. If the API server does not answer such questions, the requests themselves will tell.
func allows(ctx context.Context, client dynamic.Interface, r right) (bool, error) {
	attributes := map[string]any{"verb": r.verb, "group": r.resource.Group, "resource": r.resource.Resource,
		"subresource": r.subresource, "namespace": r.namespace}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": attributes}}}
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}
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

// rights are those that a backup needs.
func (b *Backup) rights() (list []right) {
	for i := range b.Kinds {
		s := &b.Kinds[i]
		for _, namespace := range s.listed() {
			list = append(list, right{verb: "list", resource: s.GVK.GroupVersion().WithResource(s.Resource), namespace: namespace})
		}
		if s.Custom {
			list = append(list, right{verb: "get", resource: definitions})
		}
	}
	return list
}

// rights are those that the writes of a plan need.
func (r *Restore) rights(plan *Plan) (list []right) {
	if len(plan.Definitions) > 0 {
		list = append(list, right{verb: "create", resource: definitions}, right{verb: "patch", resource: definitions})
	}
	if len(plan.Namespaces) > 0 {
		list = append(list, right{verb: "create", resource: namespaces})
	}
	for i, t := range r.kinds {
		k := plan.Kinds[i]
		if t.install != nil {
			list = append(list, right{verb: "list", resource: t.gvr()})
		}
		replaced := r.OnConflict == Replace && k.Different > 0
		for _, f := range r.Archive.Manifest.Files {
			if f.Kind != t.Name() || !r.Archive.readable(&f) {
				continue
			}
			need := right{resource: t.gvr(), namespace: r.namespace(f.Namespace)}
			for _, row := range []struct {
				verb, subresource string
				needed            bool
			}{
				{"create", "", k.Created > 0},
				{"update", "", replaced},
				{"patch", "", k.Created > 0 || k.Unfinished > 0 || replaced},
				{"patch", "status", t.HasStatus && (k.Created > 0 || k.Unfinished > 0 || replaced)},
			} {
				if row.needed {
					need.verb, need.subresource = row.verb, row.subresource
					list = append(list, need)
				}
			}
		}
	}
	return list
}
