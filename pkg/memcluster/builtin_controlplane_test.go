//go:build controlplane

package memcluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
)

// TestBuiltinKinds applies the rendered examples to both servers. The one in memory has fewer defaults, so its object
// is a part of the real one; the owners of fields are the same, also after another writer and another apply. So are the
// short names of discovery.
func TestBuiltinKinds(t *testing.T) {
	crds := must.Get(filepath.Glob("../../examples/configs/*/crd.yaml")).In(t)
	source := must.Get(kinds.Offline(crds...)).In(t)
	rendered, err := filepath.Glob("../../examples/configs/*/rendered.yaml")
	if err != nil || len(rendered) < 10 {
		t.Fatalf("%d examples, %v", len(rendered), err)
	}
	compared := map[string]bool{}
	for _, path := range rendered {
		text := must.Get(os.ReadFile(path)).In(t)
		list := must.Get(controlplane.Documents(string(text))).In(t)
		for i, u := range list {
			kind, err := source.Kind(u.GroupVersionKind())
			if err != nil || !kind.Namespaced || !kinds.IsBuiltin(u.GroupVersionKind().GroupKind()) {
				continue
			}
			compared[u.GetKind()] = true
			t.Run(fmt.Sprintf("%s/%d-%s", filepath.Base(filepath.Dir(path)), i, u.GetKind()), func(t *testing.T) { compareBuiltin(t, kind, u) })
		}
	}
	if len(compared) < 5 {
		t.Errorf("kinds compared: %v", compared)
	}
	genuine, played := shortNames(t, testkit.Config(t)), shortNames(t, newCluster(t, "default").Config())
	delete(genuine, "componentstatuses v1") // not in memory
	if diff := cmp.Diff(genuine, played); diff != "" || len(genuine) == 0 {
		t.Errorf("short names (- API server, + memory):\n%s", diff)
	}
}

// shortNames returns the short names by resource, group and version.
func shortNames(t *testing.T, config *rest.Config) map[string][]string {
	t.Helper()
	client := must.Get(discovery.NewDiscoveryClientForConfig(config)).In(t)
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if len(r.ShortNames) > 0 {
				names[r.Name+" "+list.GroupVersion] = r.ShortNames
			}
		}
	}
	return names
}

func compareBuiltin(t *testing.T, kind *kinds.Kind, document *unstructured.Unstructured) {
	ns := testkit.Namespace(t)
	document.SetNamespace(ns)
	document.SetOwnerReferences(nil) // the owners do not exist, and the garbage collector runs
	data, _ := document.Object["data"].(map[string]any)
	for key, value := range data {
		if value == generated.Placeholder { // no API server stores the placeholder
			data[key] = "Z2VuZXJhdGVk"
		}
	}
	cluster := must.Get(memcluster.New(nil)).In(t)
	must.Get(cluster.Put(object("v1", "Namespace", "", ns, nil))).In(t)
	memory := must.Get(dynamic.NewForConfig(cluster.Config())).In(t)
	write := func(when string, do func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) {
		t.Helper()
		want := must.Get(do(testkit.Dynamic(t).Resource(kind.GVR).Namespace(ns))).In(t)
		got := must.Get(do(memory.Resource(kind.GVR).Namespace(ns))).In(t)
		must.Same(t, owned(t, want), owned(t, got), when, "fields are owned otherwise")
		for _, key := range []string{"metadata", "status"} { // apiVersion was compared, the server sets the status
			unstructured.RemoveNestedField(got.Object, key)
		}
		must.Same(t, "", extraValue("", got.Object, want.Object), when, "the object in memory has what the real one has not")
	}
	apply := func(r dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return r.Apply(t.Context(), document.GetName(), document, metav1.ApplyOptions{FieldManager: "operator", Force: true})
	}
	write("after the apply", apply)
	write("after somebody's write", func(r dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		label := []byte(`{"metadata":{"labels":{"theirs":"1"}}}`)
		return r.Patch(t.Context(), document.GetName(), types.MergePatchType, label, metav1.PatchOptions{FieldManager: "them"})
	})
	write("after another apply", apply)
}

// owned returns managedFields without times.
func owned(t *testing.T, u *unstructured.Unstructured) any {
	t.Helper()
	entries := u.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	text := must.Get(json.Marshal(entries)).In(t)
	var out any
	must.Do(t, json.Unmarshal(text, &out))
	return out
}

// extraValue returns a value of part that whole does not have, or "".
func extraValue(at string, part, whole any) string {
	switch p := part.(type) {
	case map[string]any:
		w, _ := whole.(map[string]any)
		for key, value := range p {
			if where := extraValue(at+"."+key, value, w[key]); where != "" {
				return where
			}
		}
		return ""
	case []any:
		w, _ := whole.([]any)
		if len(p) != len(w) {
			return at
		}
		for i := range p {
			if where := extraValue(fmt.Sprintf("%s[%d]", at, i), p[i], w[i]); where != "" {
				return where
			}
		}
		return ""
	}
	if !cmp.Equal(part, whole) {
		return fmt.Sprintf("%s is %v, not %v", at, part, whole)
	}
	return ""
}
