//go:build unix

package drift_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// hostile returns an object whose managedFields have an entry of ours with fieldsV1.
func hostile(fieldsV1, obj map[string]any) *unstructured.Unstructured {
	obj["apiVersion"], obj["kind"] = "v1", "ConfigMap"
	obj["metadata"] = map[string]any{"name": "a", "managedFields": []any{
		map[string]any{"manager": manager, "operation": "Apply", "fieldsV1": fieldsV1},
		map[string]any{"manager": "other", "operation": "Update", "fieldsV1": fieldsV1},
	}}
	return &unstructured.Unstructured{Object: obj}
}

// TestHostileManagedFields: forged managedFields of 1.5 MB take no more time than walking over them.
func TestHostileManagedFields(t *testing.T) {
	const many = 6_000
	items := func(item func(i int) any) []any {
		out := make([]any, many)
		for i := range out {
			out[i] = item(i)
		}
		return out
	}
	names := func(name func(i int) string) map[string]any {
		out := map[string]any{}
		for i := range many {
			out[name(i)] = map[string]any{}
		}
		return map[string]any{"f:list": out}
	}
	deep := func(levels int, key string) map[string]any {
		out := map[string]any{}
		for range levels {
			out = map[string]any{key: out}
		}
		return out
	}
	named := func(i int) any { return map[string]any{"name": fmt.Sprint(i), fmt.Sprint("k", i): int64(i)} }
	for reason, u := range map[string]*unstructured.Unstructured{
		"as many names as items": hostile(names(func(i int) string { return fmt.Sprintf(`k:{"name":"%d"}`, i) }),
			map[string]any{"list": items(named)}),
		"each name by other key fields": hostile(names(func(i int) string { return fmt.Sprintf(`k:{"k%d":%d}`, i, i) }),
			map[string]any{"list": items(named)}),
		"each name needs parsing": hostile(names(func(i int) string { return fmt.Sprintf(`k:{"na\u006de":"%d"}`, i) }),
			map[string]any{"list": items(named)}),
		"all items alike": hostile(names(func(i int) string { return "k:{" + strings.Repeat(" ", i%100) + `"name":"x"}` }),
			map[string]any{"list": items(func(int) any { return map[string]any{"name": "x", "y": strings.Repeat("y", 50)} })}),
		"a set": hostile(names(func(i int) string { return fmt.Sprintf(`v:"%d"`, i) }),
			map[string]any{"list": items(func(i int) any { return fmt.Sprint(i) })}),
		"by number":              hostile(names(func(i int) string { return fmt.Sprintf("i:%d", i) }), map[string]any{"list": items(named)}),
		"as deep as JSON goes":   hostile(deep(9_990, "f:a"), deep(9_990, "a")),
		"deeper than the object": hostile(deep(9_990, "f:a"), deep(10, "a")),
	} {
		t.Run(reason, func(t *testing.T) {
			start := cpuTime(t)
			for _, v := range fuzzViews() {
				v.Live(u)
				projection, _ := drift.Project(u, manager)
				drift.Changed(projection, u, v)
				drift.Changed(nil, u, v)
			}
			drift.LostFields(u, hostile(map[string]any{}, u.DeepCopy().Object), manager)
			if took := cpuTime(t) - start; took > 10*time.Second {
				t.Errorf("it took %s of a processor", took)
			}
		})
	}
}

// cpuTime returns the CPU time of this process, which does not depend on other load.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	must.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
