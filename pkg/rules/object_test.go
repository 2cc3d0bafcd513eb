package rules

import (
	"os"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
)

// testSchema returns the schema in testdata, parsed like an API server's OpenAPI.
func testSchema(t testing.TB) *spec.Schema {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/schema.yaml")).In(t)
	schema := &spec.Schema{}
	must.Do(t, yaml.Unmarshal(data, schema))
	return schema
}

// testObject fits the schema in testdata.
func testObject() map[string]any {
	return map[string]any{
		"apiVersion": "tools.example.com/v1",
		"kind":       "Thing",
		"metadata": map[string]any{
			"name": "web", "namespace": "apps", "uid": "1-2-3", "generation": int64(4),
			"labels":            map[string]any{"tools.example.com/app": "web", "a__b": "c"},
			"annotations":       map[string]any{},
			"creationTimestamp": "2026-11-20T10:00:00Z",
			"ownerReferences":   []any{map[string]any{"kind": "Parent", "uid": "0", "controller": true}},
		},
		"spec": map[string]any{
			"image": "registry.example.com/web", "tag": nil, "replicas": int64(3), "ratio": int64(1), "enabled": true,
			"port":      "http",
			"config":    map[string]any{"log-level": "info", "nested": map[string]any{"deep": int64(1 << 53)}, "list": []any{int64(1), "two"}},
			"quota":     map[string]any{"cpu": "1", "pods": int64(10)},
			"labels":    map[string]any{"zone": "b", "app": "web", "tier": "front"},
			"node-pool": "fast", "namespace": "elsewhere",
			"since": "2026-11-20T10:00:00Z", "timeout": "90s", "data": "aGk=",
			"zones": []any{"a", "b"}, "oldZones": []any{"b", "a"},
			"env":      []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B"}},
			"parts":    []any{map[string]any{"name": "p", "extra": map[string]any{"x": 1.5}}},
			"template": map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "inner"}, "data": map[string]any{"k": "v"}},
		},
		"status": map[string]any{
			"availableReplicas": int64(2),
			"conditions":        []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}
}
