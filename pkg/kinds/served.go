package kinds

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionSource is a Source that knows the served versions of a resource.
type VersionSource interface {
	// ServedVersions returns the served versions. known is false if the source does not know; the error is a failed request.
	ServedVersions(ctx context.Context, resource schema.GroupResource) (versions []string, known bool, err error)
}

// ServedVersions implements VersionSource. It sends one request, and one for each version of the group.
func (c *Cluster) ServedVersions(ctx context.Context, resource schema.GroupResource) (versions []string, known bool, err error) {
	all, err := c.versions(ctx, resource.Group)
	if err != nil {
		return nil, false, err
	}
	for _, gv := range all {
		list, err := c.resources(ctx, gv)
		if err != nil {
			return nil, false, err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			versions = append(versions, gv.Version)
		}
	}
	slices.Sort(versions)
	return versions, true, nil
}

// ServedVersions implements VersionSource, for the definitions that were given.
func (f *files) ServedVersions(_ context.Context, resource schema.GroupResource) (versions []string, known bool, err error) {
	for gvk := range f.where {
		if f.kinds[gvk].GVR.GroupResource() == resource {
			versions = append(versions, gvk.Version)
		}
	}
	slices.Sort(versions)
	return versions, len(versions) > 0, nil
}
