package discovered

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

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// resolved has the last schema of each kind, *resolvedSchema by GroupVersionKind: documents have megabytes, and are
// read again only if their hash changes.
var resolved sync.Map

type resolvedSchema struct {
	hash   string // of the document
	schema *spec.Schema
}

// resolve returns a kind's schema. It sends one request if the schema is in resolved, else two, and shares them with
// other calls.
func (c *Cluster) resolve(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	request := func() (any, error) { return c.discovery.OpenAPIV3().Paths() }
	index, joined := c.answers.get(indexKey, nil, request)
	found, err := c.resolveBy(index, gvk)
	if joined && err != nil { // the kind may be newer than the index
		index, _ = c.answers.get(indexKey, index, request)
		found, err = c.resolveBy(index, gvk)
	}
	return found, err
}

// resolveBy is resolve by an index of all documents.
func (c *Cluster) resolveBy(index *answer, gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if index.err != nil {
		return nil, index.err
	}
	document := documentOf(gvk.GroupVersion(), index.value.(map[string]openapi.GroupVersion), c)
	if known, ok := resolved.Load(gvk); ok && known.(*resolvedSchema).hash == document.hash() {
		return known.(*resolvedSchema).schema, nil
	}
	source := resolver.ClientDiscoveryResolver{Discovery: document}
	found, err := source.ResolveSchema(gvk)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	if kinds.Tidy(found); kinds.IsBuiltin(gvk.GroupKind()) {
		kinds.TidyBuiltin(found)
	}
	if document.read == document.hash() {
		resolved.Store(gvk, &resolvedSchema{document.read, found})
	}
	return found, nil
}

// openapiDocument is the OpenAPI document of one group and version. It is its own client, because a resolver would
// request the paths again.
type openapiDocument struct {
	discovery.DiscoveryInterface
	openapi.GroupVersion
	answers *answers
	path    string
	read    string // the hash of the document: another API server may respond with a newer one
}

func documentOf(gv schema.GroupVersion, paths map[string]openapi.GroupVersion, c *Cluster) *openapiDocument {
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	return &openapiDocument{DiscoveryInterface: c.discovery, GroupVersion: paths[path], path: path, answers: &c.answers}
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

// Schema implements openapi.GroupVersion. Kinds of one group and version share a request, by the URL of the document,
// which has its hash: a response with another hash is not shared.
func (d *openapiDocument) Schema(contentType string) ([]byte, error) {
	key := contentType + " " + d.ServerRelativeURL()
	found, _ := d.answers.get(key, nil, func() (any, error) { return d.GroupVersion.Schema(contentType) })
	if found.err != nil {
		return nil, found.err
	}
	text := found.value.([]byte)
	if d.read = fmt.Sprintf("%X", sha512.Sum512(text)); d.read != d.hash() {
		d.answers.forget(key, found)
	}
	return text, nil
}
