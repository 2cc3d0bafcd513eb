package backup

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/ownership"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// managers are the archived managedFields, with the owners' new uids. The API server refuses the next apply of a
// manager of a version that the definition does not have: its fields are converted to the version of the object.
func (p *pass) managers(ctx context.Context, t *target, u *unstructured.Unstructured, pairs []string) (any, error) {
	entries, _, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil || len(entries) == 0 {
		return []any{map[string]any{}}, err // which clears them
	}
	var managers any = entries
	if isGone := t.isGone; slices.ContainsFunc(u.GetManagedFields(), isGone) {
		owners, err := p.ownershipOf(t)
		if err != nil {
			return nil, err
		}
		converted, guessed, err := owners.Managers(ctx, u, isGone)
		if err != nil {
			return nil, err
		}
		if managers = converted; guessed {
			p.result.Guessed = append(p.result.Guessed, p.describe(t, u))
		}
	}
	text, err := json.Marshal(managers)
	return json.RawMessage(strings.NewReplacer(pairs...).Replace(string(text))), err
}

// isGone reports whether the definition does not have the version of managedFields any more.
func (t *target) isGone(e metav1.ManagedFieldsEntry) bool {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	return err == nil && gv.Group == t.GVR().Group && t.Definition != "" && !slices.Contains(t.versions, gv.Version)
}

// ownershipOf converts managedFields by the archived definition, and the conversion that its objects had.
func (p *pass) ownershipOf(t *target) (*ownership.Ownership, error) {
	if t.owners != nil {
		return t.owners, nil
	}
	archived, err := p.Archive.Definition(&t.Kind)
	if err != nil {
		return nil, err
	}
	crd, err := typed(archived)
	if err != nil {
		return nil, err
	}
	versions, err := kinds.Versions(crd)
	if err != nil {
		return nil, err
	}
	version, err := readVersion(archived, t.GVR().Version)
	if err != nil {
		return nil, err
	}
	var c *convert.Converter
	if p.Converter != nil {
		c = p.Converter(crd)
	}
	if s := crd.Spec.Conversion; s == nil || s.Strategy == apiextensionsv1.NoneConverter {
		c = convert.None(t.GVK().GroupKind(), version, versions)
	} else if c == nil || !c.Has(version.Name) {
		c = convert.None(t.GVK().GroupKind(), version, nil)
	}
	t.owners, err = ownership.New(c)
	return t.owners, err
}
