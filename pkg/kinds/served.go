package kinds

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionSource is a Source that knows the served versions of a resource.
type VersionSource interface {
	// ServedVersions returns the served versions. known is false if the source does not know; the error is a failed
	// request.
	ServedVersions(ctx context.Context, resource schema.GroupResource) (versions []string, known bool, err error)
}

// ServedVersions implements VersionSource, for the definitions that were given.
func (f *files) ServedVersions(
	_ context.Context, resource schema.GroupResource,
) (versions []string, known bool, err error) {
	for gvk := range f.where {
		if f.kinds[gvk].GVR.GroupResource() == resource {
			versions = append(versions, gvk.Version)
		}
	}
	slices.Sort(versions)
	return versions, len(versions) > 0, nil
}
