//go:build controlplane

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// likeNewKind is a kind in testdata/like_new.yaml.
type likeNewKind struct {
	Kind   string
	Base   map[string]any
	Fields map[string][]any
	// downstream is its name in the config.
	downstream string
}

func (k likeNewKind) gvk() schema.GroupVersionKind {
	group, kind, _ := strings.Cut(k.Kind, " ")
	return schema.FromAPIVersionAndKind(group, kind)
}

// likeNewChange is a change of a document.
type likeNewChange struct {
	name     string // of the test
	object   string
	kind     likeNewKind
	from, to map[string]any
	// onlyValue means that the same fields are set before and after, and that nothing else follows from their values.
	onlyValue bool
	// created is a new object made from to.
	created *unstructured.Unstructured
}

// likeNewChanges are the changes of all kinds: each value is set and removed and exchanged for the next one, and the
// first one is emptied.
func likeNewChanges(t *testing.T, list []likeNewKind) []likeNewChange {
	t.Helper()
	var out []likeNewChange
	for _, k := range list {
		add := func(name string, from, to map[string]any, onlyValue bool) {
			out = append(out, likeNewChange{name: k.gvk().Kind + name, object: fmt.Sprintf("c%d", len(out)), kind: k, from: from, to: to, onlyValue: onlyValue})
		}
		with := func(path string, value any) map[string]any {
			return withValue(t, k.Base, path, value)
		}
		for _, path := range slices.Sorted(maps.Keys(k.Fields)) {
			values := k.Fields[path]
			for i, value := range values {
				at := fmt.Sprintf("%s/%d", path, i)
				add(at+"-set", k.Base, with(path, value), false)
				add(at+"-removed", with(path, value), k.Base, false)
				if empty := emptyOf(value); empty != nil && i == 0 {
					add(at+"-emptied", with(path, value), with(path, empty), false)
					add(at+"-filled", with(path, empty), with(path, value), false)
				}
				if next := (i + 1) % len(values); next != i {
					add(fmt.Sprintf("%s-%d", at, next), with(path, value), with(path, values[next]), isScalar(value) && isScalar(values[next]) && !strings.HasSuffix(path, ".type") && !strings.HasSuffix(path, ".serviceAccount"))
				}
			}
		}
	}
	return out
}

func withValue(t *testing.T, base map[string]any, path string, value any) map[string]any {
	t.Helper()
	out := runtime.DeepCopyJSON(base)
	must.Do(t, fieldpath.Set(out, fieldpath.MustParse(path), runtime.DeepCopyJSONValue(value)))
	return out
}

// emptyOf is the empty value of the same type; nil for a number and a boolean.
func emptyOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	case string:
		if value != "" {
			return ""
		}
	}
	return nil
}

func isScalar(value any) bool {
	switch value := value.(type) {
	case nil, map[string]any, []any:
		return false
	case string:
		return value != ""
	}
	return true
}

// likeNewConfig is an operator that makes one object of each Pool, of the kind in its spec.
func likeNewConfig(list []likeNewKind, ns, name string) string {
	var b strings.Builder
	for _, k := range list {
		apiVersion, kind := k.gvk().ToAPIVersionAndKind()
		fmt.Fprintf(&b, "  - name: %s\n    apiVersion: %s\n    kind: %s\n    when: self.spec.downstream == %[1]q\n    targetNamespaces: {from: Any}\n    template: |\n"+
			"      metadata: {name: \"NAME-{{ .metadata.name }}\"}\n", k.downstream, apiVersion, kind)
		keys := map[string]bool{}
		for key := range k.Base {
			keys[key] = true
		}
		for path := range k.Fields {
			keys[fieldpath.MustParse(path)[0].Field] = true
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			fmt.Fprintf(&b, "      {{- if hasKey .spec.document %q }}\n      %s: {{ .spec.document.%s }}\n      {{- end }}\n", key, key, key)
		}
	}
	conf := strings.Replace(widgetConfig, "kind: Widget", "kind: Pool", 1)
	from, to := strings.Index(conf, "  - name: config"), strings.Index(conf, "conventions:")
	return fill(conf[:from]+b.String()+conf[to:], ns, name)
}

// settled waits until the status of each Pool is about its current generation and nothing is being done, and returns
// what it says.
func settled(t *testing.T, ns string, changes []likeNewChange) map[string]string {
	t.Helper()
	said := map[string]string{}
	testkit.Eventually(t, patience, func() (bool, string) {
		clear(said)
		for _, u := range testkit.List(t, pools, ns, "") {
			observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
			_, reason, message := condition(&u, "Ready")
			var state any
			for _, d := range downstreamsOf(&u) {
				state = d["state"]
			}
			busy := reason == "Create" || reason == "Update" || reason == "Repair" || reason == "Waiting" || reason == "Changed"
			switch {
			case observed != u.GetGeneration() || busy || u.GetAnnotations()["unsettled"] != "":
			case reason == "Rejected":
				said[u.GetName()] = reason
			case state == "InSync":
				said[u.GetName()] = ""
			case state == "Stale" && strings.Contains(message, "a new object"):
				_, paths, _ := strings.Cut(message, "change them: ")
				paths, _, _ = strings.Cut(paths, ";")
				said[u.GetName()] = "Stale: " + paths
			}
		}
		var rest []string
		for _, c := range changes {
			if _, ok := said[c.object]; !ok {
				rest = append(rest, c.name)
			}
		}
		return len(rest) == 0, fmt.Sprintf("not settled: %s", strings.Join(rest, ", "))
	})
	return said
}

// TestLikeNew: after each change of a document, the object is what a new one made from the document would be, or the
// status says what differs. The golden file has what the status says.
func TestLikeNew(t *testing.T) {
	t.Parallel()
	data := must.Get(os.ReadFile("testdata/like_new.yaml")).In(t)
	var list []likeNewKind
	must.Do(t, yaml.UnmarshalStrict(data, &list))
	complete(list)
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	changes := validChanges(t, ns, likeNewChanges(t, list))
	for _, c := range changes {
		text, err := json.Marshal(map[string]any{"apiVersion": "test.example.com/v1", "kind": "Pool", "metadata": map[string]any{"name": c.object},
			"spec": map[string]any{"downstream": c.kind.downstream, "document": c.from}})
		if err != nil {
			t.Fatal(err)
		}
		testkit.Apply(t, ns, string(text))
	}
	var mu sync.Mutex
	dryCreates := map[string]int{} // by the prefix of the generated name
	cfg := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.Contains(r.URL.RawQuery, "dryRun=All") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			var obj metav1.PartialObjectMetadata
			if err := json.Unmarshal(body, &obj); err == nil {
				mu.Lock()
				dryCreates[obj.GenerateName]++
				mu.Unlock()
			}
		}
		return next.RoundTrip(r)
	})
	startWith(t, cfg, func(_ *config.Operator, o *engine.Options) { o.Workers = 8 }, likeNewConfig(list, ns, name)).ready()
	settled(t, ns, changes)
	for _, c := range changes {
		testkit.Update(t, pools, ns, c.object, func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["document"] = c.to
		})
	}
	after := settled(t, ns, changes)
	mu.Lock()
	created := maps.Clone(dryCreates)
	mu.Unlock()
	var said []string
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			if line := c.check(t, ns, name+"-"+c.object, after[c.object], created[name+"-"+c.object+"-"]); line != "" {
				said = append(said, c.name+": "+line+"\n")
			}
		})
	}
	golden.File(t, "testdata/like_new.golden", []byte(strings.Join(said, "")))
}

// complete names the downstreams, and makes whole numbers int64, as in objects.
func complete(list []likeNewKind) {
	for i := range list {
		list[i].downstream = fmt.Sprintf("d%d", i)
		list[i].Base = wholeNumbers(list[i].Base).(map[string]any)
		for path := range list[i].Fields {
			list[i].Fields[path] = wholeNumbers(list[i].Fields[path]).([]any)
		}
	}
}

func wholeNumbers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) {
			return int64(v)
		}
	case map[string]any:
		for k := range v {
			v[k] = wholeNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	}
	return v
}

// check compares the object with a new one. It returns what the status says if they differ.
func (c *likeNewChange) check(t *testing.T, ns, object, after string, dryRuns int) string {
	resource, ns := resourceIn(t, c.kind, ns)
	live := testkit.Find(t, resource, ns, object)
	switch {
	case live == nil:
		t.Errorf("there is no object: %s", after)
	case reflect.DeepEqual(withoutMetadata(live), withoutMetadata(c.created)):
		must.Same(t, "", after, "it is like a new object, and the status")
		if c.onlyValue && dryRuns > 0 {
			t.Errorf("%d dry-run creates after a change of a value", dryRuns)
		}
	case after == "":
		is, _ := json.Marshal(withoutMetadata(live))
		want, _ := json.Marshal(withoutMetadata(c.created))
		t.Errorf("the status says nothing:\n is %s\nnew %s", is, want)
	default:
		return after
	}
	return ""
}

// validChanges are the changes between documents of which new objects can be made.
func validChanges(t *testing.T, ns string, changes []likeNewChange) (valid []likeNewChange) {
	t.Helper()
	untyped, err := dynamic.NewForConfig(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		resource, in := resourceIn(t, c.kind, ns)
		create := func(document map[string]any) (*unstructured.Unstructured, error) {
			doc := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document)}
			doc.SetGroupVersionKind(c.kind.gvk())
			doc.SetGenerateName("new-")
			return untyped.Resource(resource).Namespace(in).Create(t.Context(), doc, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		if _, err := create(c.from); err != nil {
			continue
		}
		if c.created, err = create(c.to); err == nil {
			valid = append(valid, c)
		}
	}
	return valid
}

// resourceIn is the resource of a kind, and the namespace of its objects.
func resourceIn(t *testing.T, k likeNewKind, ns string) (schema.GroupVersionResource, string) {
	t.Helper()
	kind := must.Get(likeNewCluster().Kind(k.gvk())).In(t)
	if !kind.Namespaced {
		ns = ""
	}
	return kind.GVR, ns
}

var likeNewCluster = sync.OnceValue(func() *discovered.Cluster {
	cluster, err := discovered.New(testkit.Config(nil))
	if err != nil {
		panic(err)
	}
	return cluster
})

// withoutMetadata is an object without its metadata, its status, and what the API server allocates or makes of the uid.
func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	out := runtime.DeepCopyJSON(u.Object)
	delete(out, "metadata")
	delete(out, "status")
	for _, path := range []string{".spec.clusterIP", ".spec.clusterIPs", ".spec.healthCheckNodePort"} {
		fieldpath.Remove(out, fieldpath.MustParse(path))
	}
	ports, _ := fieldpath.Get(out, fieldpath.MustParse(".spec.ports"))
	items, _ := ports.([]any)
	for _, item := range items {
		delete(item.(map[string]any), "nodePort")
	}
	if u.GetKind() == "Job" {
		fieldpath.Remove(out, fieldpath.MustParse(".spec.selector"))
		fieldpath.Remove(out, fieldpath.MustParse(".spec.template.metadata"))
	}
	return out
}
