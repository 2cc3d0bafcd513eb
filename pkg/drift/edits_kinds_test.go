//go:build controlplane

package drift_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// notEdited are kinds of the API server that are not tested, with the reason.
var notEdited = map[string]string{
	"APIService": "one that nothing serves breaks discovery for every other test",
	"Namespace":  "only its metadata can be applied, and each takes long to delete",
}

// served is a kind under test.
type served struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
	root       typeOf
	seed       string // YAML
}

// attempt is a document and the place in it that is edited.
type attempt struct {
	seed, doc map[string]any
	at        place
	exclusive []fieldpath.Path
}

// documents returns the seed, once for each place to edit, and the seed with one more field each, in random order.
func (k *served) documents(t *testing.T, ns string, random *mathrand.Rand) []attempt {
	var own, more []attempt
	seed := k.fill(t, ns)
	for _, path := range pathsOf(seed, nil) {
		if of, ok := k.root.follow(path); ok {
			own = append(own, attempt{seed: seed, doc: seed, at: place{path, of}})
		}
	}
	for _, p := range k.root.places(nil, nil) {
		empty, full := p.of.values()
		for _, value := range slices.Concat(empty, full) {
			if have, ok := valueIn(seed, p.path); !ok || !reflect.DeepEqual(have, value) {
				more = append(more, attempt{seed: seed, doc: p.put(seed, k.root, value), at: p})
			}
		}
	}
	random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	var out []attempt
	for i := range max(len(own), len(more)) { // alternately
		out = append(append(out, own[min(i, len(own)):min(i+1, len(own))]...), more[min(2*i, len(more)):min(2*i+2, len(more))]...)
	}
	for i := range out {
		if i%4 == 3 {
			out[i].exclusive = out[i].exclusiveFields()
		}
	}
	return out
}

// exclusiveFields returns the map that is edited, or the one that contains the place.
func (a attempt) exclusiveFields() []fieldpath.Path {
	path := a.at.path
	if value, _ := valueIn(a.doc, path); reflect.TypeOf(value) != reflect.TypeFor[map[string]any]() {
		path = path[:len(path)-1]
	}
	var names []string
	for _, step := range path {
		name, isField := step.(string)
		if !isField {
			return nil
		}
		names = append(names, name)
	}
	if len(names) == 0 || names[0] == "metadata" {
		return nil
	}
	return []fieldpath.Path{fieldpath.New(names...)}
}

// kindsServed returns the kinds that the API server serves.
func kindsServed(t *testing.T) []*served {
	t.Helper()
	finder := finder(t)
	lists := must.Get(finder.ServerPreferredResources()).In(t)
	seeds := seedsByKind(t)
	var out []*served
	for _, list := range lists {
		gv := must.Get(schema.ParseGroupVersion(list.GroupVersion)).In(t)
		schemas := schemasOf(t, finder, gv)
		for _, r := range list.APIResources {
			if notEdited[r.Kind] != "" || !slices.Contains(r.Verbs, "patch") || !slices.Contains(r.Verbs, "create") {
				continue
			}
			k := &served{gvk: gv.WithKind(r.Kind), gvr: gv.WithResource(r.Name), namespaced: r.Namespaced, root: schemas[r.Kind]}
			if k.seed = seeds[k.gvk.GroupVersion().String()+" "+r.Kind]; k.seed == "" {
				k.seed = "{apiVersion: " + gv.String() + ", kind: " + r.Kind + ", metadata: {name: NAME}}"
			}
			out = append(out, k)
		}
	}
	return out
}

func seedsByKind(t *testing.T) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile("../../testdata/seeds.yaml")).In(t)
	out := map[string]string{}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		seed := parse(t, part)
		out[seed["apiVersion"].(string)+" "+seed["kind"].(string)] = part
	}
	return out
}

// fill returns a document made from the seed, apart from its name.
func (k *served) fill(t *testing.T, ns string) map[string]any {
	t.Helper()
	return parse(t, strings.NewReplacer("NAMESPACE", ns, "REQUEST", signingRequest(t)).Replace(k.seed))
}

// named returns a document a unique name.
func (k *served) named(doc map[string]any) map[string]any {
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	n := strconv.FormatInt(numbers.Add(1), 10)
	decoded := map[string]any{}
	if err := json.Unmarshal([]byte(strings.NewReplacer("NAME", "e"+n, "NUMBER", n).Replace(string(text))), &decoded); err != nil {
		panic(err)
	}
	return decoded
}

// signingRequest returns the request in a CertificateSigningRequest.
func signingRequest(t *testing.T) string {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).In(t)
	der := must.Get(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)).In(t)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// pathsOf lists the places of a document that are not its identity.
func pathsOf(v any, at []any) []([]any) {
	var out [][]any
	add := func(step, value any) {
		path := append(slices.Clone(at), step)
		if len(path) == 1 && (step == "apiVersion" || step == "kind" || step == "metadata") || len(path) == 2 && path[0] == "metadata" &&
			step == "name" {
			if step != "metadata" {
				return
			}
		} else {
			out = append(out, path)
		}
		out = append(out, pathsOf(value, path)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			add(key, v[key])
		}
	case []any:
		for i := range v {
			add(i, v[i])
		}
	}
	return out
}

// follow returns the schema at a path.
func (s typeOf) follow(path []any) (typeOf, bool) {
	for _, step := range path {
		node := s.node["items"]
		if name, ok := step.(string); ok {
			properties, _ := s.node["properties"].(map[string]any)
			if node, ok = properties[name]; !ok {
				node = s.node["additionalProperties"]
			}
		}
		s, _ = s.to(node)
	}
	return s, true
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func compareTexts(a, b string) int { return cmp.Compare(a, b) }

func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text[:min(len(text), 600)])
}
