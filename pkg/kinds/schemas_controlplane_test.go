//go:build controlplane

package kinds

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// refPrefix begins the references in a document of OpenAPI v3.
const refPrefix = "#/components/schemas/"

// TestServerSchemas: the embedded schema of every built-in kind is the API server's. With -update the embedded file is written
// from the API server.
func TestServerSchemas(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	version := served.Major + "." + served.Minor
	if golden.Updating() {
		pack(t, version)
		return
	}
	if version != BuiltinVersion() {
		t.Logf("the schemas of Kubernetes %s are embedded, the API server is %s: not compared", BuiltinVersion(), version)
		return
	}
	source, err := Offline()
	if err != nil {
		t.Fatal(err)
	}
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
		if diff := cmp.Diff(asText(t, live), asText(t, offline.Schema)); diff != "" {
			t.Errorf("%v (- live + offline):\n%s", k.GVK, diff)
		}
	}
	if compared < 60 {
		t.Errorf("only %d kinds were compared", compared)
	}
}

func asText(t *testing.T, s *spec.Schema) string {
	t.Helper()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pack writes schemas.json.gz.
func pack(t *testing.T, version string) {
	t.Helper()
	b := &bundle{Version: version, Kinds: map[string]string{}, Schemas: map[string]json.RawMessage{}}
	all := published(t)
	for name, s := range all {
		var gvks []schema.GroupVersionKind
		if err := s.Extensions.GetObject("x-kubernetes-group-version-kind", &gvks); err != nil {
			t.Fatal(err)
		}
		for _, gvk := range gvks {
			if builtins()[gvk] != nil {
				b.Kinds[kindKey(gvk)] = name
			}
		}
	}
	for _, name := range b.Kinds {
		take(t, b, all, name)
	}
	text, err := json.Marshal(b) // sorts the keys
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("schemas.json.gz", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kinds, %d schemas, %d bytes, %d packed", len(b.Kinds), len(b.Schemas), len(text), out.Len())
}

// published returns the schemas of all group versions of Kubernetes.
func published(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*spec.Schema{}
	for path, group := range paths {
		if strings.Contains(path, ".example.com/") || !strings.HasPrefix(path, "api") {
			continue
		}
		text, err := group.Schema("application/json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Components struct {
				Schemas map[string]*spec.Schema `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
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
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	b.Schemas[name] = text
	for _, ref := range refs {
		take(t, b, all, ref)
	}
}
