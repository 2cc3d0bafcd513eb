package drift_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
)

func benchView() *drift.View {
	return &drift.View{Manager: manager, Hash: drift.Key{Annotation: "tools.example.com/spec-hash"}}
}

func BenchmarkProject(b *testing.B) {
	for _, name := range []string{"deployment", "service", "configmap"} {
		u := recorded(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				drift.Project(u, manager)
			}
		})
	}
}

// BenchmarkLive measures the work for each watch event.
func BenchmarkLive(b *testing.B) {
	for _, size := range []string{"deployment", "27KB"} {
		u := recorded(b, "deployment")
		if size == "27KB" {
			u = largeDeployment(b)
		}
		v := benchView()
		b.Run(size, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Live(u)
			}
		})
	}
}

// largeDeployment returns a Deployment of 27 KB as JSON: the recorded one with many environment variables, status, and
// the entries of other managers.
func largeDeployment(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	u := recorded(t, "deployment")
	spec := u.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	app := spec["containers"].([]any)[0].(map[string]any)
	owned := u.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["fieldsV1"].(map[string]any)
	for _, step := range []string{"f:spec", "f:template", "f:spec", "f:containers", `k:{"name":"app"}`, "f:env"} {
		owned = owned[step].(map[string]any)
	}
	env := app["env"].([]any)
	for i := range 130 {
		name := fmt.Sprintf("VARIABLE_%03d", i)
		env = append(env, map[string]any{"name": name, "value": strings.Repeat("x", 90)})
		owned[fmt.Sprintf(`k:{"name":%q}`, name)] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
	}
	app["env"] = env
	u.SetOwnerReferences(nil)
	owner := map[string]any{"apiVersion": "tools.example.com/v1", "kind": "Appoperator", "name": "web",
		"uid": "7e0c7d3e-90a5-4a4b-8f0d-0a2b1f7c0001", "controller": true}
	u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	annotations := u.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
	annotations["tools.example.com/spec-hash"] = canonical.Hash(canonical.SHA256, nil)
	u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "replicas": int64(3), "availableReplicas": int64(3),
		"readyReplicas": int64(3), "updatedReplicas": int64(3),
		"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
			"message": "Deployment has minimum availability."}}}
	return u
}

// TestHeapOfLive limits the memory for a Deployment of 27 KB to half a KiB.
func TestHeapOfLive(t *testing.T) {
	const objects, most = 600, 528
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // other threads and pools would count too
	text, err := json.Marshal(largeDeployment(t).Object)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < 26_000 {
		t.Fatalf("the Deployment has %d bytes of JSON, want 27 KB", len(text))
	}
	measure := func(v *drift.View) int64 {
		transform := v.Transform()
		kept := make([]any, objects)
		must.Get(transform(largeDeployment(t))).In(t)
		before := heap()
		for i := range kept {
			u := &unstructured.Unstructured{Object: parseJSON(t,
				[]byte(strings.Replace(string(text), `"name":"web"`, fmt.Sprintf(`"name":"web-%d"`, i), 1)))}
			if kept[i], err = transform(u); err != nil {
				t.Fatal(err)
			}
		}
		each := (heap() - before) / objects
		runtime.KeepAlive(kept)
		return each
	}
	each := measure(benchView())
	for range 2 { // other goroutines may allocate too: the smallest result is the best
		if each > most {
			each = min(each, measure(benchView()))
		}
	}
	t.Logf("%d bytes for each object of %d bytes", each, len(text))
	if each > most {
		t.Errorf("%d bytes of heap for each object, want at most %d", each, most)
	}
	v := benchView()
	v.Keep = [][]string{{"status", "availableReplicas"}}
	t.Logf("%d bytes with one field of the status kept", measure(v))
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkP measures the projection and its digest, as a watch computes them.
func BenchmarkP(b *testing.B) {
	for _, name := range []string{"deployment", "service", "configmap"} {
		u := recorded(b, name)
		v := benchView()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.SumOf(u)
			}
		})
	}
}
