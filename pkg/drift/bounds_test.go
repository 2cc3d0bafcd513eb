package drift_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// expensiveObjects are objects of size n that were written to be expensive to process. Their managedFields are forged.
var expensiveObjects = map[string]func(n int) (desired, live map[string]any){
	"items by key": func(n int) (map[string]any, map[string]any) {
		return withItems(n, func(i int) any { return map[string]any{"name": fmt.Sprint("n", i), "v": int64(i)} },
			func(i int) string { return fmt.Sprintf(`k:{"name":"n%d"}`, i) })
	},
	"items by value": func(n int) (map[string]any, map[string]any) {
		return withItems(n, func(i int) any { return fmt.Sprint("v", i) }, func(i int) string { return fmt.Sprintf(`v:"v%d"`, i) })
	},
	"names with escapes": func(n int) (map[string]any, map[string]any) {
		return withItems(n, func(i int) any { return map[string]any{"name": fmt.Sprint("<", i)} },
			func(i int) string { return fmt.Sprintf(`k:{"name":"<%d"}`, i) })
	},
	"a key for each item": func(n int) (map[string]any, map[string]any) {
		return withItems(n, func(i int) any { return map[string]any{fmt.Sprint("k", i): "x"} },
			func(i int) string { return fmt.Sprintf(`k:{"k%d":"x"}`, i) })
	},
	"a name of many keys": func(n int) (map[string]any, map[string]any) {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf(`"k%d":"x"`, i)
		}
		return withItems(n, func(i int) any { return map[string]any{fmt.Sprint("k", i): "x"} },
			func(i int) string { return "k:{" + strings.Join(keys[:min(i%2*n+1, n)], ",") + "}" })
	},
	"many managers": func(n int) (map[string]any, map[string]any) {
		desired, live := withItems(n, func(i int) any { return fmt.Sprint("v", i) }, func(i int) string { return fmt.Sprintf(`v:"v%d"`, i) })
		meta := live["metadata"].(map[string]any)
		for i := range n {
			meta["managedFields"] = append(meta["managedFields"].([]any), map[string]any{"manager": fmt.Sprint("m", i), "operation": "Apply",
				"time":     "2026-11-20T00:00:00Z",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:other": map[string]any{}}}})
		}
		return desired, live
	},
	"conditions": func(n int) (map[string]any, map[string]any) {
		desired, live := withItems(1, func(int) any { return "x" }, func(int) string { return `v:"x"` })
		conditions := make([]any, n)
		for i := range conditions {
			conditions[i] = map[string]any{"type": "Stalled", "status": "True", "reason": "x", "message": strings.Repeat("m", 1000)}
		}
		live["status"] = map[string]any{"conditions": conditions}
		return desired, live
	},
}

func withItems(n int, item func(i int) any, name func(i int) string) (desired, live map[string]any) {
	have, want, owned := make([]any, n), make([]any, n), map[string]any{}
	for i := range n {
		have[i], want[n-1-i] = item(i), item(i)
		owned[name(i)] = map[string]any{".": map[string]any{}}
	}
	object := func(list []any) map[string]any {
		return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": "b"},
			"spec": map[string]any{"items": list}}
	}
	desired, live = object(want), object(have)
	live["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "us", "operation": "Apply",
		"fieldsV1": map[string]any{"f:spec": map[string]any{"f:items": owned}}}}
	return desired, live
}

// allocatedBytes does everything that is done with a live object, and returns how much it allocates.
func allocatedBytes(t *testing.T, desired, live map[string]any) int {
	t.Helper()
	var before, after runtime.MemStats
	view := &drift.View{Manager: "us"}
	start := time.Now()
	runtime.ReadMemStats(&before)
	form := must.Get(canonical.Form(desired)).In(t)
	drift.Desired(form, view)
	canonical.Hash("sha256", form)
	l := view.Live(&unstructured.Unstructured{Object: live})
	if len(l.StatusMessage) > 2048 {
		t.Errorf("a message of %d bytes is kept", len(l.StatusMessage))
	}
	drift.Changed(form, &unstructured.Unstructured{Object: live}, view)
	runtime.ReadMemStats(&after)
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it takes %s", took)
	}
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestWorkGrowsWithTheObject: an object four times as large takes not much more than four times the work.
func TestWorkGrowsWithTheObject(t *testing.T) {
	for name, attack := range expensiveObjects {
		t.Run(name, func(t *testing.T) {
			const n = 1500
			desired, live := attack(10)
			allocatedBytes(t, desired, live) // fills pools
			desired, live = attack(n)
			small := allocatedBytes(t, desired, live)
			desired, live = attack(4 * n)
			large := allocatedBytes(t, desired, live)
			if large > 8*small+1<<20 {
				text, _ := json.Marshal(live)
				t.Errorf("%d bytes allocated for an object, %d for one four times as large (%d bytes)", small, large, len(text))
			}
		})
	}
}
