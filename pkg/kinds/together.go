package kinds

import (
	"context"
	"errors"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Together returns a source that knows what another one does, and besides the kinds of definitions. A definition
// without a structural schema is left out.
func Together(source Source, crds []*apiextensionsv1.CustomResourceDefinition) Source {
	return join(source, crds, false)
}

// Instead is Together where the definitions replace what the source knows of the same kinds.
func Instead(source Source, crds []*apiextensionsv1.CustomResourceDefinition) Source {
	return join(source, crds, true)
}

func join(source Source, crds []*apiextensionsv1.CustomResourceDefinition, first bool) Source {
	t := &together{Source: source, more: map[schema.GroupVersionKind]*Kind{}, first: first}
	for _, crd := range crds {
		found, err := Defined(crd)
		if err != nil {
			continue
		}
		for _, k := range found {
			t.more[k.GVK] = k
		}
	}
	if len(t.more) == 0 {
		return source
	}
	return t
}

type together struct {
	Source
	more  map[schema.GroupVersionKind]*Kind
	first bool // more comes before Source
}

// Kind implements Source.
func (t *together) Kind(gvk schema.GroupVersionKind) (*Kind, error) {
	more := t.more[gvk]
	if more != nil && t.first {
		return more, nil
	}
	k, err := t.Source.Kind(gvk)
	if more != nil && errors.Is(err, ErrUnknown) {
		return more, nil
	}
	return k, err
}

// ServedVersions implements VersionSource.
func (t *together) ServedVersions(
	ctx context.Context, resource schema.GroupResource,
) (versions []string, known bool, err error) {
	if source, ok := t.Source.(VersionSource); ok {
		if versions, known, err = source.ServedVersions(ctx, resource); known && len(versions) > 0 || err != nil {
			return versions, known, err
		}
	}
	for gvk, k := range t.more {
		if k.GVR.GroupResource() == resource {
			versions, known = append(versions, gvk.Version), true
		}
	}
	slices.Sort(versions)
	return versions, known, nil
}
