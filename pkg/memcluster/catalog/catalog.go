// Package catalog has the kinds that the API server in memory serves, and describes them: discovery and OpenAPI.
package catalog

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// Catalog has the kinds that are served.
type Catalog struct {
	Resources map[schema.GroupVersionResource]*resource.Resource
	documents map[schema.GroupVersion]*document // OpenAPI of custom kinds, created on first use
}

// New has the built-in kinds.
func New() *Catalog {
	return &Catalog{resource.BuiltinResources(), map[schema.GroupVersion]*document{}}
}

// Define replaces the kinds of a resource of custom objects; none are left where none are given.
func (c *Catalog) Define(gr schema.GroupResource, resources []*resource.Resource) {
	maps.DeleteFunc(c.Resources, func(gvr schema.GroupVersionResource, r *resource.Resource) bool {
		return r.Custom != nil && gvr.GroupResource() == gr
	})
	for _, r := range resources {
		c.Resources[r.GVR] = r
	}
	clear(c.documents)
}

// ResourceOf returns the resource of a kind; nil if it is not served.
func (c *Catalog) ResourceOf(gvk schema.GroupVersionKind) *resource.Resource {
	for _, r := range c.Resources {
		if r.GVK == gvk {
			return r
		}
	}
	return nil
}
