package kinds

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionSource is a Source that can tell in which versions a resource is served.
type VersionSource interface {
	// ServedVersions lists them. known is false where the source cannot tell; the error is a request that failed.
	ServedVersions(ctx context.Context, resource schema.GroupResource) (versions []string, known bool, err error)
}

// ServedVersions implements VersionSource. It costs a request, and one for each version of the group.
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
