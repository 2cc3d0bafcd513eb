package catalog

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
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

const asAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Describe handles requests about the API itself: discovery, OpenAPI and the version. It returns nil for any other
// path.
func (c *Catalog) Describe(path, accept string) (document []byte, contentType string) {
	parts := strings.Split(path, "/")
	switch {
	case path == "version":
		built := kinds.BuiltinVersion()
		return answers.Encode(apiversion.Info{Major: "1", Minor: strings.TrimPrefix(built, "1."),
			GitVersion: "v" + built + ".0"}), answers.AsJSON
	case path == "healthz", path == "livez", path == "readyz":
		return []byte("ok"), "text/plain; charset=utf-8"
	case path == "openapi/v3":
		return c.openapiPaths(), answers.AsJSON
	case strings.HasPrefix(path, "openapi/v3/"):
		return c.document(groupVersion(parts[2:]), true).text, answers.AsJSON
	case parts[0] == "api" || parts[0] == "apis":
		return c.discovery(parts, accept)
	}
	return nil, ""
}

func (c *Catalog) discovery(parts []string, accept string) (document []byte, contentType string) {
	isCore := parts[0] == "api"
	aggregated := c.aggregated(isCore)
	groups, resources, _ := discovery.SplitGroupsAndResources(aggregated) // the errors are about stale versions
	switch {
	case len(parts) == 1 && strings.Contains(accept, asAggregated):
		return answers.Encode(aggregated), asAggregated
	case len(parts) == 1 && isCore:
		return answers.Encode(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"}}), answers.AsJSON
	case len(parts) == 1:
		groups.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		return answers.Encode(groups), answers.AsJSON
	case len(parts) == 2 && !isCore:
		for _, group := range groups.Groups {
			if group.Name == parts[1] {
				group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return answers.Encode(group), answers.AsJSON
			}
		}
	case len(parts) == 2, len(parts) == 3 && !isCore:
		if list := resources[groupVersion(parts)]; list != nil {
			list.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
			return answers.Encode(list), answers.AsJSON
		}
	}
	return nil, ""
}

// groupVersion parses api/v1 or apis/GROUP/VERSION.
func groupVersion(parts []string) schema.GroupVersion {
	if len(parts) == 3 {
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}
	}
	return schema.GroupVersion{Version: parts[len(parts)-1]}
}

// Sorted returns the resources in the order of discovery: the newest stable version of a group first.
func (c *Catalog) Sorted() []*resource.Resource {
	out := make([]*resource.Resource, 0, len(c.Resources))
	for _, r := range c.Resources {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *resource.Resource) int {
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

func singularName(r *resource.Resource) string {
	if r.Singular != "" {
		return r.Singular
	}
	return strings.ToLower(r.GVK.Kind)
}

// aggregated returns discovery in one document, for the core group or for all others.
func (c *Catalog) aggregated(core bool) discoveryv2.APIGroupDiscoveryList {
	list := discoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList",
		APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, r := range c.Sorted() {
		if core != (r.GVK.Group == "") {
			continue
		}
		if n := len(list.Items); n == 0 || list.Items[n-1].Name != r.GVK.Group {
			list.Items = append(list.Items, discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.GVK.Group}})
		}
		group := &list.Items[len(list.Items)-1]
		if n := len(group.Versions); n == 0 || group.Versions[n-1].Version != r.GVK.Version {
			group.Versions = append(group.Versions,
				discoveryv2.APIVersionDiscovery{Version: r.GVK.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent})
		}
		version := &group.Versions[len(group.Versions)-1]
		version.Resources = append(version.Resources, discoveryOf(r))
	}
	return list
}

func discoveryOf(r *resource.Resource) discoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: r.GVK.Group, Version: r.GVK.Version, Kind: r.GVK.Kind}
	d := discoveryv2.APIResourceDiscovery{Resource: r.GVR.Resource, ResponseKind: kind, SingularResource: singularName(r),
		ShortNames: r.Short, Categories: r.Categories, Verbs: verbs, Scope: discoveryv2.ScopeCluster}
	if r.Namespaced {
		d.Scope = discoveryv2.ScopeNamespace
	}
	if r.HasStatus {
		d.Subresources = []discoveryv2.APISubresourceDiscovery{{Subresource: "status",
			ResponseKind: kind, Verbs: statusVerbs}}
	}
	return d
}

func (c *Catalog) openapiPaths() []byte {
	paths := map[string]any{}
	for gvr := range c.Resources {
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
	return answers.Encode(map[string]any{"paths": paths})
}

// document is the OpenAPI document of a group and version.
type document struct {
	text []byte
	hash string
}

// builtinDocuments are the documents without custom kinds, which are the same in every cluster: *document by
// GroupVersion.
var builtinDocuments sync.Map

// document returns the document of a group and version. A document of built-in kinds is large: it returns nil if it
// does not exist and is not needed yet.
func (c *Catalog) document(gv schema.GroupVersion, needed bool) *document {
	custom := slices.ContainsFunc(slices.Collect(maps.Values(c.Resources)), func(r *resource.Resource) bool {
		return r.Custom != nil && r.GVK.GroupVersion() == gv
	})
	if known, ok := builtinDocuments.Load(gv); ok && !custom {
		return known.(*document)
	}
	if known := c.documents[gv]; known != nil {
		return known
	}
	if !custom && !needed {
		return nil
	}
	d := &document{text: c.openapi(gv)}
	d.hash = fmt.Sprintf("%X", sha512.Sum512(d.text))
	if custom {
		c.documents[gv] = d
	} else {
		builtinDocuments.Store(gv, d)
	}
	return d
}

// openapi returns a document with the schemas of the kinds of a group and version, with references resolved. Of the
// paths it has what kubectl looks for: which kind is where, and that a write can be validated and tried.
func (c *Catalog) openapi(gv schema.GroupVersion) []byte {
	schemas, paths := map[string]*spec.Schema{}, map[string]any{}
	for _, r := range c.Resources {
		if r.GVK.GroupVersion() != gv {
			continue
		}
		paths[pathOf(r)] = operationsOf(r)
		if s, err := r.ReadSchema(); err == nil { // a kind without a schema is omitted
			schemas[r.GVK.Kind] = kinds.ModelOf(r.GVK, s)
		}
	}
	return answers.Encode(map[string]any{"openapi": "3.0.0",
		"info":  map[string]string{"title": "Kubernetes", "version": "v" + kinds.BuiltinVersion()},
		"paths": paths, "components": map[string]any{"schemas": schemas}})
}

// pathOf is where one object of a resource is, as OpenAPI writes it.
func pathOf(r *resource.Resource) string {
	path := "/apis/" + r.GVK.Group
	if r.GVK.Group == "" {
		path = "/api"
	}
	path += "/" + r.GVK.Version
	if r.Namespaced {
		path += "/namespaces/{namespace}"
	}
	return path + "/" + r.GVR.Resource + "/{name}"
}

// operationsOf describes reading and patching an object.
func operationsOf(r *resource.Resource) map[string]any {
	kind := map[string]string{"group": r.GVK.Group, "version": r.GVK.Version, "kind": r.GVK.Kind}
	var parameters []any
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation", "force"} {
		parameters = append(parameters,
			map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	operation := func(verb string, parameters []any) map[string]any {
		return map[string]any{"x-kubernetes-action": verb, "x-kubernetes-group-version-kind": kind, "parameters": parameters}
	}
	return map[string]any{"get": operation("get", nil), "patch": operation("patch", parameters)}
}
