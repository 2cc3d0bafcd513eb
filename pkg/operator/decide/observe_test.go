package decide_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// What is left out of a document is distinguished from what it changes: without a dry run nobody knows what of it has a
// default.
func TestWouldChange(t *testing.T) {
	owned := func(manager, operation string, data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{"name": "web",
			"managedFields": []any{map[string]any{"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:data": map[string]any{"f:key": map[string]any{}, "f:more": map[string]any{}}}}}}}}
	}
	for _, row := range []struct {
		reason, want string
		data         map[string]any
	}{
		{"a value changes and a field is left out", "would change .data.key (last written by helm); would remove, or reset to the API server's defaults, .data.more",
			map[string]any{"key": "old", "more": "x"}},
		{"a value changes", "would change .data.key (last written by helm)", map[string]any{"key": "old"}},
		{"a field is left out", "would remove, or reset to the API server's defaults, .data.more", map[string]any{"key": "new", "more": "x"}},
		{"nothing differs", "only our marks would change", map[string]any{"key": "new"}},
	} {
		p := onePipeline(nil)
		p.Downstreams[0].View.Manager = "us"
		doc := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"key": "new"}}
		if got := marks.WouldChange(p.Settings, upstreamUID, 0, doc, owned("helm", "Update", row.data), owned("us", "Apply", row.data)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.reason, got, row.want)
		}
	}
}
