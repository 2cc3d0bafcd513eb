package backup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/memcluster"
)

const shopDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, listKind: ShopList, plural: shops, singular: shop}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                tls: {type: object, properties: {secret: {type: string}}}
                allow: {type: array, nullable: true, items: {type: string}}
                number: {type: number}
                count: {type: integer}
                old: {type: string}
                x: {type: object, x-kubernetes-preserve-unknown-fields: true, nullable: true}
            status:
              type: object
              properties: {phase: {type: string}, old: {type: string}}
`

var shops = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shops"}

// inMemory is a cluster in memory with one custom kind.
type inMemory struct {
	t       *testing.T
	cluster *memcluster.Cluster
	config  *rest.Config
	client  dynamic.Interface
}

func newInMemory(t *testing.T, definition string) *inMemory {
	t.Helper()
	cluster, err := memcluster.New([]*unstructured.Unstructured{testkit.Parse(t, definition)})
	if err != nil {
		t.Fatal(err)
	}
	m := &inMemory{t: t, cluster: cluster, config: cluster.Config()}
	m.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutReviews{next} })
	if m.client, err = dynamic.NewForConfig(m.config); err != nil {
		t.Fatal(err)
	}
	m.putNamespace("default")
	return m
}

// withoutReviews answers as an API server that cannot be asked for rights.
type withoutReviews struct{ next http.RoundTripper }

func (w withoutReviews) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
	}
	return w.next.RoundTrip(r)
}

func (m *inMemory) save() string {
	m.t.Helper()
	b := &backup.Backup{Client: m.client, Kinds: []backup.Selection{{Resource: "shops", Choices: []backup.Choice{{}}, Namespaced: true,
		HasStatus: true, Custom: true, GVK: shops.GroupVersion().WithKind("Shop")}}}
	path := filepath.Join(m.t.TempDir(), "backup")
	if _, _, err := b.Run(m.t.Context(), path); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m *inMemory) restore(path, onConflict string) *backup.Restore {
	m.t.Helper()
	r := &backup.Restore{Client: m.client, OnConflict: onConflict, FieldManager: "restorer"}
	var err error
	if r.Discovery, err = discovery.NewDiscoveryClientForConfig(m.config); err != nil {
		m.t.Fatal(err)
	}
	if r.Archive, err = archive.Open(path, nil); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = r.Archive.Close() })
	return r
}

func (m *inMemory) create(name string, spec map[string]any) {
	m.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Shop",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": runtime.DeepCopyJSON(spec)}}
	must.Get(m.client.Resource(shops).Namespace("default").Create(m.t.Context(), u, metav1.CreateOptions{FieldManager: "author"})).In(m.t)
}

func (m *inMemory) update(name string, spec any) {
	m.t.Helper()
	objects := m.client.Resource(shops).Namespace("default")
	u := must.Get(objects.Get(m.t.Context(), name, metav1.GetOptions{})).In(m.t)
	u.Object["spec"] = spec
	must.Get(objects.Update(m.t.Context(), u, metav1.UpdateOptions{FieldManager: "author"})).In(m.t)
}

func (m *inMemory) spec(name string) string {
	m.t.Helper()
	u := must.Get(m.client.Resource(shops).Namespace("default").Get(m.t.Context(), name, metav1.GetOptions{})).In(m.t)
	return asJSON(m.t, u.Object["spec"])
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v)).In(t)
	return string(text)
}

// Empty maps, empty lists and null are values of a custom kind: an object without one is not as in the backup.
func TestEmptyValues(t *testing.T) {
	t.Parallel()
	m := newInMemory(t, shopDefinition)
	m.create("a", testkit.Parse(t, `{apiVersion: v1, kind: X, spec: {tls: {}, allow: [], number: 9007199254740993,
		x: {"007": 1.0, "e": {}, "nul": null, "ä€😀": [1, null, {}]}}}`).Object["spec"].(map[string]any))
	before := m.spec("a")
	path := m.save()
	objects := m.client.Resource(shops).Namespace("default")
	_, err := objects.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"spec": {"tls": null, "allow": null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := m.restore(path, backup.Fail)
	plan, err := r.Plan(t.Context())
	if err != nil || plan.Different() != 1 || plan.Differences[0].Text !=
		".spec.allow is absent in the cluster and [] in the backup; .spec.tls is absent in the cluster and {} in the backup" {
		t.Errorf("the plan is %+v: %v", plan, err)
	}
	r.OnConflict = backup.Replace
	result, err := r.Run(t.Context(), plan)
	if err != nil || result.Replaced != 1 || len(result.Changed)+len(result.Refused) > 0 {
		t.Errorf("the result is %+v: %v", result, err)
	}
	must.Same(t, before, m.spec("a"), "restored")
}

// A random value that a random change makes another one is found, and what is restored is what was there, to the byte.
func TestExactValues(t *testing.T) {
	t.Parallel()
	const objects = 300
	m := newInMemory(t, shopDefinition)
	random := rand.New(rand.NewPCG(1, 2))
	before := map[string]map[string]any{}
	for i := range objects {
		name := fmt.Sprintf("s%03d", i)
		before[name] = map[string]any{"x": map[string]any{"a": randomValue(random, 3), "b": randomValue(random, 3)}}
		m.create(name, before[name])
	}
	path := m.save()
	changed := 0
	for name, spec := range before {
		other := runtime.DeepCopyJSON(spec)
		other["x"] = randomChange(random, other["x"])
		if m.update(name, other); !bytes.Equal([]byte(asJSON(t, spec)), []byte(m.spec(name))) {
			changed++
		}
	}
	r := m.restore(path, backup.Replace)
	plan, err := r.Plan(t.Context())
	if err != nil || plan.Different() != changed || plan.Kinds[0].Equal != objects-changed || changed < objects/2 {
		t.Fatalf("%d were changed: %+v: %v", changed, plan.Kinds, err)
	}
	if result, err := r.Run(t.Context(), plan); err != nil || result.Replaced != changed || len(result.Changed)+len(result.Refused) > 0 {
		t.Errorf("the result is %+v: %v", result, err)
	}
	for name, spec := range before {
		must.Same(t, asJSON(t, spec), m.spec(name), name)
	}
}

// randomValue makes a value of JSON, which is often an empty one.
func randomValue(r *rand.Rand, depth int) any {
	kinds := 6
	if depth > 0 {
		kinds = 9
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return map[string]any{}
	case 2:
		return []any{}
	case 3:
		return []any{"", "null", "{}", "x"}[r.IntN(4)]
	case 4:
		return []any{int64(0), int64(9007199254740993), 0.5}[r.IntN(3)]
	case 5:
		return r.IntN(2) == 0
	case 6:
		return []any{randomValue(r, depth-1), randomValue(r, depth-1)}
	}
	made := map[string]any{}
	for _, key := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			made[key] = randomValue(r, depth-1)
		}
	}
	return made
}

// randomChange replaces, empties or removes one value below v.
func randomChange(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		key := []string{"a", "b", "c"}[r.IntN(3)]
		if _, ok := v[key]; ok && r.IntN(3) > 0 {
			if v[key] = randomChange(r, v[key]); r.IntN(4) == 0 {
				delete(v, key)
			}
			return v
		}
		v[key] = randomValue(r, 0)
		return v
	case []any:
		if len(v) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(v))
			v[i] = randomChange(r, v[i])
			return v
		}
	}
	return randomValue(r, 0)
}
