//go:build controlplane

package kinds

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// refPrefix begins the references in a document of OpenAPI v3.
const refPrefix = "#/components/schemas/"

// TestServerSchemas: the embedded schema of every built-in kind is the API server's. With -update the embedded file is
// written from the API server.
func TestServerSchemas(t *testing.T) {
	client := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	served := must.Get(client.ServerVersion()).In(t)
	version := served.Major + "." + served.Minor
	if golden.Updating() {
		pack(t, version)
		return
	}
	if version != BuiltinVersion() {
		t.Logf("the schemas of Kubernetes %s are embedded, the API server is %s: not compared", BuiltinVersion(), version)
		return
	}
	source := must.Get(Offline()).In(t)
	compared := 0
	for _, k := range Builtins() {
		live, err := (&resolver.ClientDiscoveryResolver{Discovery: client}).ResolveSchema(k.GVK)
		if err != nil {
			continue // not served by default
		}
		TidyBuiltin(live)
		compared++
		offline, err := source.Kind(k.GVK)
		if err != nil || offline.Schema == nil {
			t.Errorf("%v: offline there is %v", k.GVK, err)
			continue
		}
		must.Same(t, asText(t, live), asText(t, offline.Schema), k.GVK, "(- live + offline)")
	}
	if compared < 60 {
		t.Errorf("only %d kinds were compared", compared)
	}
}

func asText(t *testing.T, s *spec.Schema) string {
	t.Helper()
	text := must.Get(json.MarshalIndent(s, "", " ")).In(t)
	return string(text)
}

// pack writes schemas.json.gz.
func pack(t *testing.T, version string) {
	t.Helper()
	b := &bundle{Version: version, Kinds: map[string]string{}, Schemas: map[string]json.RawMessage{}}
	all := published(t)
	for name, s := range all {
		var gvks []schema.GroupVersionKind
		must.Do(t, s.Extensions.GetObject("x-kubernetes-group-version-kind", &gvks))
		for _, gvk := range gvks {
			if builtins()[gvk] != nil {
				b.Kinds[kindKey(gvk)] = name
			}
		}
	}
	for _, name := range b.Kinds {
		take(t, b, all, name)
	}
	text := must.Get(json.Marshal(b)).In(t)
	var out bytes.Buffer
	w := must.Get(gzip.NewWriterLevel(&out, gzip.BestCompression)).In(t)
	must.Get(w.Write(text)).In(t)
	must.Do(t, w.Close())
	must.Do(t, os.WriteFile("schemas.json.gz", out.Bytes(), 0o644))
	t.Logf("%d kinds, %d schemas, %d bytes, %d packed", len(b.Kinds), len(b.Schemas), len(text), out.Len())
}

// published returns the schemas of all group versions of Kubernetes.
func published(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	client := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	paths := must.Get(client.OpenAPIV3().Paths()).In(t)
	all := map[string]*spec.Schema{}
	for path, group := range paths {
		if strings.Contains(path, ".example.com/") || !strings.HasPrefix(path, "api") {
			continue
		}
		text := must.Get(group.Schema("application/json")).In(t)
		var document struct {
			Components struct {
				Schemas map[string]*spec.Schema `json:"schemas"`
			} `json:"components"`
		}
		must.Do(t, json.Unmarshal(text, &document))
		for name, s := range document.Components.Schemas {
			all[name] = s
		}
	}
	return all
}

// take adds a schema and those that it refers to.
func take(t *testing.T, b *bundle, all map[string]*spec.Schema, name string) {
	t.Helper()
	if _, done := b.Schemas[name]; done {
		return
	}
	s := all[name]
	if s == nil {
		t.Fatalf("%s is referred to and not there", name)
	}
	b.Schemas[name] = nil
	var refs []string
	walk(TidyBuiltin(s), func(s *spec.Schema) {
		if len(s.AllOf) == 1 && s.AllOf[0].Ref.GetURL() != nil { // a reference with its own description
			s.SchemaProps = s.AllOf[0].SchemaProps
		}
		if url := s.Ref.GetURL(); url != nil {
			ref := strings.TrimPrefix(s.Ref.String(), refPrefix)
			refs = append(refs, ref)
			s.Ref = spec.MustCreateRef(ref)
		}
	})
	text := must.Get(json.Marshal(s)).In(t)
	b.Schemas[name] = text
	for _, ref := range refs {
		take(t, b, all, ref)
	}
}
