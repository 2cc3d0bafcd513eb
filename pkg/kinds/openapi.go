package kinds

import (
	"crypto/sha512"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// resolved has the last schema of each kind, *resolvedSchema by GroupVersionKind: documents have megabytes, and are read again
// only if their hash changes.
var resolved sync.Map

type resolvedSchema struct {
	hash   string // of the document
	schema *spec.Schema
}

// resolve returns a kind's schema. It sends one request if the schema is in resolved, else two.
func (c *Cluster) resolve(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	paths, err := c.discovery.OpenAPIV3().Paths()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was asked for
	}
	document := documentOf(gvk.GroupVersion(), paths, c.discovery)
	if known, ok := resolved.Load(gvk); ok && known.(*resolvedSchema).hash == document.hash() {
		return known.(*resolvedSchema).schema, nil
	}
	source := resolver.ClientDiscoveryResolver{Discovery: document}
	found, err := source.ResolveSchema(gvk)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	if tidy(found); IsBuiltin(gvk.GroupKind()) {
		tidyBuiltin(found)
	}
	if document.read == document.hash() {
		resolved.Store(gvk, &resolvedSchema{document.read, found})
	}
	return found, nil
}

// openapiDocument is the OpenAPI document of one group and version. It is its own client, because a resolver would request the
// paths again.
type openapiDocument struct {
	discovery.DiscoveryInterface
	openapi.GroupVersion
	path string
	read string // the hash of the document: another API server may respond with a newer one
}

func documentOf(gv schema.GroupVersion, paths map[string]openapi.GroupVersion, client discovery.DiscoveryInterface) *openapiDocument {
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	return &openapiDocument{DiscoveryInterface: client, GroupVersion: paths[path], path: path}
}

// hash returns the hash in the API server's URL; "" if there is none.
func (d *openapiDocument) hash() string {
	if d.GroupVersion == nil {
		return ""
	}
	_, hash, _ := strings.Cut(d.ServerRelativeURL(), "?hash=")
	return hash
}

// OpenAPIV3 implements discovery.DiscoveryInterface.
func (d *openapiDocument) OpenAPIV3() openapi.Client { return d }

// Paths implements openapi.Client.
func (d *openapiDocument) Paths() (map[string]openapi.GroupVersion, error) {
	if d.GroupVersion == nil {
		return nil, nil
	}
	return map[string]openapi.GroupVersion{d.path: d}, nil
}

// Schema implements openapi.GroupVersion.
func (d *openapiDocument) Schema(contentType string) ([]byte, error) {
	text, err := d.GroupVersion.Schema(contentType)
	d.read = fmt.Sprintf("%X", sha512.Sum512(text))
	return text, err
}
