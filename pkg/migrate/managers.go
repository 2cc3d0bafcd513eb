package migrate

import (
	"context"
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/ownership"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// ownership is what converts managedFields: the conversion of the kind, or that of an API server without a webhook.
func (m *Migration) ownership(crd *apiextensionsv1.CustomResourceDefinition,
	versions []*kinds.Version, stored *kinds.Version,
) (*ownership.Ownership, error) {
	c := m.Converter
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	switch conversion := crd.Spec.Conversion; {
	case conversion == nil || conversion.Strategy == apiextensionsv1.NoneConverter:
		c = convert.None(kind, stored, versions)
	case c == nil || !c.Has(stored.Name):
		c = convert.None(kind, stored, nil)
	}
	return ownership.New(c)
}

// fixManagers has managedFields name the stored version in the place of those that leave: an apply by such a manager
// would fail once they are gone, and a patch would take all managedFields off. By way of the status they cannot be
// changed. It returns whether the object was written, and whether nothing converts some of them.
func (m *Migration) fixManagers(
	ctx context.Context, p *Plan, u *unstructured.Unstructured,
) (fixed, guessed bool, err error) {
	for try := 0; ; try++ {
		patch, guessed, err := managersPatch(ctx, u, p)
		if patch == nil || err != nil {
			return false, false, err
		}
		objects := m.Client.Resource(p.resource).Namespace(u.GetNamespace())
		_, err = objects.Patch(ctx, u.GetName(), types.JSONPatchType, patch,
			metav1.PatchOptions{FieldManager: m.FieldManager})
		if !apierrors.IsConflict(err) || try >= tries {
			return err == nil, guessed, err
		}
		if u, err = objects.Get(ctx, u.GetName(), metav1.GetOptions{}); err != nil {
			return false, false, err
		}
	}
}

// namesLeaving reports whether managedFields name a version that leaves.
func namesLeaving(u *unstructured.Unstructured, p *Plan) bool {
	return slices.ContainsFunc(u.GetManagedFields(), p.isLeaving)
}

func (p *Plan) isLeaving(m metav1.ManagedFieldsEntry) bool {
	gv, err := schema.ParseGroupVersion(m.APIVersion)
	return err == nil && gv.Group == p.resource.Group && !slices.Contains(p.kept, gv.Version)
}

// managersPatch is nil where nothing is to be fixed.
func managersPatch(ctx context.Context, u *unstructured.Unstructured, p *Plan) (patch []byte, guessed bool, err error) {
	if !namesLeaving(u, p) {
		return nil, false, nil
	}
	managers, guessed, err := p.owners.Managers(ctx, u, p.isLeaving)
	if err != nil {
		return nil, false, err
	}
	patch, err = json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": managers},
	})
	return patch, guessed, err
}
