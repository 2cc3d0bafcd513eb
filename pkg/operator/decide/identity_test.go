package decide_test

import "testing"

func TestRecorded(t *testing.T) {
	p := onePipeline(nil)
	item := func(name, apiVersion, kind string) map[string]any {
		return map[string]any{"name": name, "apiVersion": apiVersion, "kind": kind, "objectName": "web", "uid": "u"}
	}
	for _, row := range []struct {
		reason string
		list   any
		want   int
	}{
		{"as the config has it", []any{item("config", "v1", "ConfigMap")}, 1},
		{"another kind, from before the config changed", []any{item("config", "v1", "Secret")}, 0},
		{"another group", []any{item("config", "example.com/v1", "ConfigMap")}, 0},
		{"a downstream that the config no longer has", []any{item("gone", "v1", "ConfigMap")}, 0},
		{"what somebody else wrote", []any{"x", map[string]any{"name": int64(1)}}, 0},
		{"no list", "x", 0},
	} {
		up := upstreamObject()
		up.Object["status"] = map[string]any{"downstreams": row.list}
		if got := p.Recorded(up); len(got) != row.want {
			t.Errorf("%s: got %v", row.reason, got)
		}
	}
}
