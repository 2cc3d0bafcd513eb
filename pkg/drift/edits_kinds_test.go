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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
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

// typeOf is one place in a kind's OpenAPI schema.
type typeOf struct {
	node       map[string]any
	components map[string]any
}

// schemasOf returns the OpenAPI v3 schema of each kind of a group and version.
func schemasOf(t *testing.T, finder *discovery.DiscoveryClient, gv schema.GroupVersion) map[string]typeOf {
	t.Helper()
	all := must.Get(finder.OpenAPIV3().Paths()).In(t)
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	text := must.Get(all[path].Schema("application/json")).In(t)
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	must.Do(t, json.Unmarshal(text, &document))
	out := map[string]typeOf{}
	for _, node := range document.Components.Schemas {
		of := typeOf{node.(map[string]any), document.Components.Schemas}
		kinds, _ := of.node["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			if k := k.(map[string]any); k["group"] == gv.Group && k["version"] == gv.Version {
				out[k["kind"].(string)] = of
			}
		}
	}
	return out
}

// to returns a schema below this one, with references resolved; ref is the name of the reference.
func (s typeOf) to(node any) (of typeOf, ref string) {
	m, _ := node.(map[string]any)
	for range 3 {
		if all, ok := m["allOf"].([]any); ok && len(all) == 1 {
			inner, _ := all[0].(map[string]any)
			m = inner
		}
		name, ok := m["$ref"].(string)
		if !ok {
			break
		}
		ref = name[strings.LastIndex(name, "/")+1:]
		m, _ = s.components[ref].(map[string]any)
	}
	return typeOf{m, s.components}, ref
}

func (s typeOf) kind() string {
	kind, _ := s.node["type"].(string)
	switch {
	case s.node["x-kubernetes-int-or-string"] == true || s.node["format"] == "int-or-string":
		return "either"
	case s.node["oneOf"] != nil: // a quantity
		return "quantity"
	case kind == "" || kind == "object" && s.node["x-kubernetes-preserve-unknown-fields"] == true && s.node["properties"] == nil:
		return "any"
	case kind == "object" && s.node["properties"] == nil && s.node["additionalProperties"] == nil:
		return "any"
	default:
		return kind
	}
}

// place is a field of a kind; of is its schema. For lists it is in the first item.
type place struct {
	path []any
	of   typeOf
}

func (p place) String() string {
	out := ""
	for _, step := range p.path {
		out += fmt.Sprintf(".%v", step)
	}
	return out
}

// systemOwned are fields of metadata in a template that nobody applies.
var systemOwned = []string{"managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid",
	"resourceVersion", "generation", "ownerReferences"}

// places lists the fields below a schema. It does not follow recursive types.
func (s typeOf) places(path []any, within []string) []place {
	var out []place
	add := func(node any, step any, emit bool) {
		of, ref := s.to(node)
		at := append(slices.Clone(path), step)
		if emit {
			out = append(out, place{at, of})
		}
		if ref == "" || !slices.Contains(within, ref) {
			out = append(out, of.places(at, append(slices.Clone(within), ref))...)
		}
	}
	properties, _ := s.node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		top := len(path) == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name)
		inner := len(path) > 0 && path[len(path)-1] == "metadata" && slices.Contains(systemOwned, name)
		if !top && !inner {
			add(properties[name], name, true)
		}
	}
	if values := s.node["additionalProperties"]; values != nil {
		add(values, "key", true)
	}
	if items := s.node["items"]; items != nil {
		add(items, 0, false)
	}
	return out
}

// texts are tried in turn if a schema only says that a value is a string.
var texts = []any{"a", "/a", "1", "10.0.0.1", "a.example.com", "10.0.0.0/8", "example.com/a", "a1"}

// values returns possible values of a field: the empty ones, and others.
func (s typeOf) values() (empty, full []any) {
	switch s.kind() {
	case "object":
		return []any{map[string]any{}}, []any{s.minimal(nil)}
	case "array":
		items, _ := s.to(s.node["items"])
		one := items.minimal(nil)
		two := runtime.DeepCopyJSONValue(items.other(one))
		return []any{[]any{}}, []any{[]any{one}, []any{one, two}}
	case "string":
		if list, ok := s.node["enum"].([]any); ok {
			return nil, list
		}
		switch s.node["format"] {
		case "byte":
			return []any{""}, []any{"YQ==", "Yg=="}
		case "date-time":
			return nil, []any{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}
		}
		return []any{""}, texts
	case "integer", "number":
		return []any{int64(0)}, []any{int64(1), int64(2), int64(80)}
	case "boolean":
		return []any{false}, []any{true}
	case "either":
		return []any{int64(0), ""}, []any{int64(1), "50%", "http", int64(2)}
	case "quantity":
		return []any{"0"}, []any{"1000m", "2", "1Gi"}
	default:
		return []any{map[string]any{}, []any{}, ""}, []any{map[string]any{"a": map[string]any{"b": []any{}}}, map[string]any{"a": "b"},
			[]any{map[string]any{"a": ""}}}
	}
}

// minimal returns a value with only the required fields, and its keys.
func (s typeOf) minimal(within []string) any {
	var empty, full []any
	if kind := s.kind(); kind != "object" && kind != "array" {
		if empty, full = s.values(); len(full) == 0 {
			full = empty
		}
		return full[0]
	}
	if s.kind() == "array" {
		items, ref := s.to(s.node["items"])
		if ref != "" && slices.Contains(within, ref) {
			return []any{}
		}
		return []any{items.minimal(append(slices.Clone(within), ref))}
	}
	out := map[string]any{}
	properties, _ := s.node["properties"].(map[string]any)
	required, _ := s.node["required"].([]any)
	for _, name := range required {
		of, ref := s.to(properties[name.(string)])
		if ref == "" || !slices.Contains(within, ref) {
			out[name.(string)] = of.minimal(append(slices.Clone(within), ref))
		}
	}
	if len(out) == 0 {
		if values := s.node["additionalProperties"]; values != nil {
			of, _ := s.to(values)
			out["key"] = of.minimal(within)
		}
	}
	return out
}

// other returns a similar value that differs from v: another name, one more number.
func (s typeOf) other(v any) any {
	switch v := v.(type) {
	case string:
		if list, ok := s.node["enum"].([]any); ok {
			return list[len(list)-1]
		}
		if s.kind() == "quantity" {
			return "7"
		}
		return v + "2"
	case int64:
		return v + 1
	case float64:
		return v + 1
	case bool:
		return !v
	case map[string]any:
		out := runtime.DeepCopyJSON(v)
		properties, _ := s.node["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(out)) {
			of, _ := s.to(properties[name])
			out[name] = of.other(out[name])
		}
		return out
	default:
		return v
	}
}

// put returns obj with value at the place; it creates what is missing on the way, with its required fields.
func (p place) put(obj map[string]any, root typeOf, value any) map[string]any {
	out := runtime.DeepCopyJSON(obj)
	put(out, p.path, root, value)
	return out
}

func put(at any, path []any, of typeOf, value any) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	switch step := path[0].(type) {
	case string:
		m, ok := at.(map[string]any)
		if !ok {
			m, _ = of.minimal(nil).(map[string]any)
		}
		if m == nil {
			m = map[string]any{}
		}
		properties, _ := of.node["properties"].(map[string]any)
		next, ok := properties[step]
		if !ok {
			next = of.node["additionalProperties"]
		}
		below, _ := of.to(next)
		m[step] = put(m[step], path[1:], below, value)
		return m
	default:
		list, _ := at.([]any)
		items, _ := of.to(of.node["items"])
		if len(list) == 0 {
			list = []any{items.minimal(nil)}
		}
		list[0] = put(list[0], path[1:], items, value)
		return list
	}
}

// finder returns a discovery client for the API server.
func finder(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	c := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	return c
}
