package memcluster

import (
	"crypto/sha512"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

const (
	asJSON       = "application/json"
	asAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// describe answers what is about the API and not about objects: discovery, OpenAPI and the version. It returns nil for any
// other path.
func (c *Cluster) describe(path, accept string) (document []byte, contentType string) {
	parts := strings.Split(path, "/")
	switch {
	case path == "version":
		return encode(
			apiversion.Info{Major: "1", Minor: strings.TrimPrefix(kinds.BuiltinVersion(), "1."), GitVersion: "v" + kinds.BuiltinVersion() + ".0"},
		), asJSON
	case path == "openapi/v3":
		return c.openapiPaths(), asJSON
	case strings.HasPrefix(path, "openapi/v3/"):
		return c.document(groupVersion(parts[2:]), true).text, asJSON
	case parts[0] == "api" || parts[0] == "apis":
		return c.discovery(path, parts, accept)
	}
	return nil, ""
}

func (c *Cluster) discovery(path string, parts []string, accept string) (document []byte, contentType string) {
	switch {
	case len(parts) == 1 && strings.Contains(accept, asAggregated):
		return c.aggregated(path == "api"), asAggregated
	case path == "api":
		return encode(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}), asJSON
	case path == "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, name := range c.groups() {
			list.Groups = append(list.Groups, *c.group(name))
		}
		return encode(list), asJSON
	case len(parts) == 2 && parts[0] == "apis":
		if group := c.group(parts[1]); len(group.Versions) > 0 {
			return encode(group), asJSON
		}
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		if list := c.apiResources(groupVersion(parts)); len(list.APIResources) > 0 {
			return encode(list), asJSON
		}
	}
	return nil, ""
}

// groupVersion reads api/v1 or apis/GROUP/VERSION.
func groupVersion(parts []string) schema.GroupVersion {
	if len(parts) == 3 {
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}
	}
	return schema.GroupVersion{Version: parts[len(parts)-1]}
}

// groups are the names of the groups besides the core's.
func (c *Cluster) groups() []string {
	var names []string
	for gvr := range c.resources {
		if gvr.Group != "" {
			names = append(names, gvr.Group)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Cluster) group(name string) *metav1.APIGroup {
	group := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, r := range c.sorted() {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: r.GVK.GroupVersion().String(), Version: r.GVK.Version}
		if r.GVK.Group == name && !slices.Contains(group.Versions, gv) {
			group.Versions = append(group.Versions, gv)
		}
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

// sorted are the resources in the order in which discovery shows them: the newest stable version of a group first.
func (c *Cluster) sorted() []*resource {
	out := make([]*resource, 0, len(c.resources))
	for _, r := range c.resources {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *resource) int {
		if order := strings.Compare(a.GVK.Group, b.GVK.Group); order != 0 {
			return order
		}
		if order := apiversion.CompareKubeAwareVersionStrings(b.GVK.Version, a.GVK.Version); order != 0 {
			return order
		}
		return strings.Compare(a.GVR.Resource, b.GVR.Resource)
	})
	return out
}

var (
	verbs       = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	statusVerbs = []string{"get", "patch", "update"}
)

func (c *Cluster) apiResources(gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, r := range c.sorted() {
		if r.GVK.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.GVR.Resource, SingularName: r.singularName(),
			Namespaced: r.Namespaced, Kind: r.GVK.Kind, Verbs: verbs})
		if r.HasStatus {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.GVR.Resource + "/status", Namespaced: r.Namespaced,
				Kind: r.GVK.Kind, Verbs: statusVerbs})
		}
	}
	return list
}

func (r *resource) singularName() string {
	if r.singular != "" {
		return r.singular
	}
	return strings.ToLower(r.GVK.Kind)
}

// aggregated is discovery in one document: of the core, or of all other groups.
func (c *Cluster) aggregated(core bool) []byte {
	list := discoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	names := c.groups()
	if core {
		names = []string{""}
	}
	for _, name := range names {
		group := discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, v := range c.group(name).Versions {
			at := discoveryv2.APIVersionDiscovery{Version: v.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}
			for _, r := range c.sorted() {
				if r.GVK.GroupVersion() == (schema.GroupVersion{Group: name, Version: v.Version}) {
					at.Resources = append(at.Resources, r.discovery())
				}
			}
			group.Versions = append(group.Versions, at)
		}
		list.Items = append(list.Items, group)
	}
	return encode(list)
}

func (r *resource) discovery() discoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: r.GVK.Group, Version: r.GVK.Version, Kind: r.GVK.Kind}
	d := discoveryv2.APIResourceDiscovery{Resource: r.GVR.Resource, ResponseKind: kind, SingularResource: r.singularName(), Verbs: verbs,
		Scope: discoveryv2.ScopeCluster}
	if r.Namespaced {
		d.Scope = discoveryv2.ScopeNamespace
	}
	if r.HasStatus {
		d.Subresources = []discoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: kind, Verbs: statusVerbs}}
	}
	return d
}

func (c *Cluster) openapiPaths() []byte {
	paths := map[string]any{}
	for gvr := range c.resources {
		path := "apis/" + gvr.GroupVersion().String()
		if gvr.Group == "" {
			path = "api/" + gvr.Version
		}
		url := "/openapi/v3/" + path
		if d := c.document(gvr.GroupVersion(), false); d != nil {
			url += "?hash=" + d.hash
		}
		paths[path] = map[string]string{"serverRelativeURL": url}
	}
	return encode(map[string]any{"paths": paths})
}

// document is what OpenAPI says of a group and version.
type document struct {
	text []byte
	hash string
}

// builtinDocuments are those without custom kinds, which are the same in every cluster: *document by GroupVersion.
var builtinDocuments sync.Map

// document returns that of a group and version. One of built-in kinds is large: it is made when it is needed, else nil.
func (c *Cluster) document(gv schema.GroupVersion, needed bool) *document {
	custom := slices.ContainsFunc(slices.Collect(maps.Values(c.resources)), func(r *resource) bool {
		return r.custom != nil && r.GVK.GroupVersion() == gv
	})
	if known, ok := builtinDocuments.Load(gv); ok && !custom {
		return known.(*document)
	}
	if !custom && !needed {
		return nil
	}
	d := &document{text: c.openapi(gv)}
	d.hash = fmt.Sprintf("%X", sha512.Sum512(d.text))
	if !custom {
		builtinDocuments.Store(gv, d)
	}
	return d
}

// openapi has the schemas of the kinds of a group and version, references resolved, and no paths.
func (c *Cluster) openapi(gv schema.GroupVersion) []byte {
	schemas := map[string]*spec.Schema{}
	for _, r := range c.resources {
		if r.GVK.GroupVersion() != gv {
			continue
		}
		if s, err := r.schema(); err == nil { // a kind without a schema has none to show
			schemas[r.GVK.Kind] = modelOf(r.GVK, s)
		}
	}
	return encode(map[string]any{"openapi": "3.0.0", "info": map[string]string{"title": "Kubernetes", "version": "v" + kinds.BuiltinVersion()},
		"paths": map[string]any{}, "components": map[string]any{"schemas": schemas}})
}
