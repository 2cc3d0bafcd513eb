//go:build controlplane

package convert_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// serve registers a CRD in a group of its own whose objects are converted by a conversion, and returns the resource
// without its version.
func serve(t *testing.T, crd, conversion string) schema.GroupResource {
	t.Helper()
	group := strings.ReplaceAll(testkit.Unique(t), "_", "-") + ".example.com"
	crd = strings.ReplaceAll(strings.ReplaceAll(crd, "group: example.com", "group: "+group), ".example.com}", "."+group+"}")
	c, problems := compile(t, []byte(crd), []byte(conversion))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	server := httptest.NewTLSServer(&webhook.Handler{Converters: func(schema.GroupKind) *convert.Converter { return c }})
	t.Cleanup(server.Close)
	var definition map[string]any
	must.Do(t, yaml.Unmarshal([]byte(crd), &definition))
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.Do(t, unstructured.SetNestedMap(definition, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": server.URL, "caBundle": base64.StdEncoding.EncodeToString(bundle)},
	}}, "spec", "conversion"))
	text := must.Get(yaml.Marshal(definition)).In(t)
	testkit.InstallCRDs(t, string(text))
	plural, _, _ := unstructured.NestedString(definition, "spec", "names", "plural")
	return schema.GroupResource{Group: group, Resource: plural}
}

// An object is written and read in both versions, and keeps what only one of them has.
func TestServed(t *testing.T) {
	t.Parallel()
	archive := must.Get(txtar.ParseFile("testdata/hostport.txtar")).In(t)
	crontabs := serve(t, string(archive.Files[0].Data), string(archive.Files[1].Data))
	ns := testkit.Namespace(t)
	old, current := crontabs.WithVersion("v1beta1"), crontabs.WithVersion("v1")
	testkit.Apply(t, ns, "apiVersion: "+crontabs.Group+"/v1beta1\nkind: CronTab\nmetadata: {name: a}\nspec: {hostPort: 'h:1'}")
	if spec := testkit.Get(t, current, ns, "a").Object["spec"]; fmt.Sprint(spec) != "map[host:h port:1]" {
		t.Errorf("in v1 it is %v", spec)
	}
	testkit.Update(t, current, ns, "a", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "port")
	})
	if spec := testkit.Get(t, old, ns, "a").Object["spec"]; fmt.Sprint(spec) != "map[hostPort:h:7]" {
		t.Errorf("in v1beta1 it is %v", spec)
	}
	for n := range 20 {
		testkit.Apply(
			t,
			ns,
			fmt.Sprintf("apiVersion: %s/v1\nkind: CronTab\nmetadata: {name: b%d}\nspec: {host: h, port: %d}", crontabs.Group, n, n+1),
		)
	}
	list, err := testkit.Dynamic(t).Resource(old).Namespace(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 21 {
		t.Fatalf("%d objects: %v", len(list.Items), err)
	}
}

// Whoever writes an old version keeps what only the new one has, and what they changed wins. A field of one version is
// a label or an annotation in the other.
func TestServedWithPreserve(t *testing.T) {
	t.Parallel()
	things := serve(t, string(crdOf(`{a: {type: string}, old: {type: string}}`,
		`{a: {type: string}, note: {type: string}, tier: {type: string, enum: [low, high]},
		  limits: {type: object, properties: {cpu: {type: integer, maximum: 10}, mode: {type: string, default: fast}}}}`)), `
hub: v1
preserve: {annotation: example.com/kept}
spokes:
  - version: v1beta1
    rules:
      - {move: ".metadata.annotations['example.com/note']", to: .spec.note}
      - {move: .metadata.labels.tier, to: .spec.tier}
`)
	ns := testkit.Namespace(t)
	old, current := things.WithVersion("v1beta1"), things.WithVersion("v1")
	head := func(version, name string) string {
		return "apiVersion: " + things.Group + "/" + version + "\nkind: Thing\nmetadata: {name: " + name + "}\n"
	}
	testkit.Apply(t, ns, head("v1", "x")+"spec: {a: one, limits: {cpu: 5}}")
	testkit.Update(t, old, ns, "x", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "two", "spec", "a")
		_ = unstructured.SetNestedField(u.Object, "only here", "spec", "old")
	})
	now := testkit.Get(t, current, ns, "x")
	must.Same(t, "map[a:two limits:map[cpu:5 mode:fast]]", fmt.Sprint(now.Object["spec"]), "after a change through v1beta1 v1")
	testkit.Update(t, current, ns, "x", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(9), "spec", "limits", "cpu")
	})
	must.Same(t, "map[a:two old:only here]", fmt.Sprint(testkit.Get(t, old, ns, "x").Object["spec"]), "after a change through v1 v1beta1")
	must.Same(t, "map[a:two limits:map[cpu:9 mode:fast]]", fmt.Sprint(testkit.Get(t, current, ns, "x").Object["spec"]), "v1")

	// What an annotation says that the schema forbids is not put back.
	testkit.Apply(t, ns, head("v1beta1", "forged")+"spec: {a: one}")
	testkit.Update(t, old, ns, "forged", func(u *unstructured.Unstructured) {
		u.SetAnnotations(
			map[string]string{"example.com/kept": `{"v1": {"fields": [{"path": ["spec", "limits"], "is": {"cpu": 11}, "backAbsent": true},` +
				`{"path": ["metadata", "name"], "is": "other", "back": "forged"}]}}`},
		)
	})
	forged := testkit.Get(t, current, ns, "forged")
	if got := fmt.Sprint(forged.Object["spec"]); got != "map[a:one]" || forged.GetAnnotations()["example.com/kept"] == "" {
		t.Errorf("after a forged annotation v1 has %s, annotations %v", got, forged.GetAnnotations())
	}
	testkit.Apply(t, ns, head("v1beta1", "other")+"spec: {a: one}")
	testkit.Update(t, old, ns, "other", func(u *unstructured.Unstructured) {
		u.SetAnnotations(
			map[string]string{"example.com/kept": `{"v1": {"fields": [{"path": ["spec", "limits"], "is": {"cpu": 11}, "backAbsent": true}]}}`},
		)
	})
	if got := fmt.Sprint(testkit.Get(t, current, ns, "other").Object["spec"]); got != "map[a:one]" {
		t.Errorf("after an annotation with a value that is too large v1 has %s", got)
	}

	testkit.Apply(t, ns, "apiVersion: "+things.Group+"/v1beta1\nkind: Thing\n"+
		"metadata: {name: marked, labels: {tier: low, l: v}, annotations: {example.com/note: one}}\nspec: {a: two}")
	says := func(u *unstructured.Unstructured) string {
		return fmt.Sprint(u.Object["spec"], u.GetLabels(), u.GetAnnotations())
	}
	must.Same(t, "map[a:two note:one tier:low] map[l:v] map[]", says(testkit.Get(t, current, ns, "marked")), "in v1 it")
	testkit.Update(t, current, ns, "marked", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "high", "spec", "tier")
	})
	const kept = `example.com/kept:{"v1":{"fields":[{"path":["metadata","annotations"],"back":{}}]}}`
	if got := says(testkit.Get(t, old, ns, "marked")); got != "map[a:two] map[l:v tier:high] map["+kept+" example.com/note:one]" {
		t.Errorf("in v1beta1 it is %s", got)
	}
}
