package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestWithFieldsTakenOver merges entries without a server.
func TestWithFieldsTakenOver(t *testing.T) {
	for _, test := range []struct{ reason, have, want string }{
		{"nothing of theirs", `[{manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}]`, ``},
		{"theirs becomes ours", `[{manager: helm, operation: Update, apiVersion: v1, time: t1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}]`,
			`[{manager: operator, operation: Apply, apiVersion: v1, time: t1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}]`},
		{"into ours, with the later time", `[{manager: operator, operation: Apply, apiVersion: v1, time: t1, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:x': {}}}},
		   {manager: helm, operation: Apply, apiVersion: v1, time: t2, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:y': {}}, 'f:b': {}}}]`,
			`[{manager: operator, operation: Apply, apiVersion: v1, time: t2, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:x': {}, 'f:y': {}}, 'f:b': {}}}]`},
		{"a place that one owns whole and the other below is owned both ways", `[{manager: operator, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:a': {}, 'f:b': {'f:x': {}}, 'f:c': {'.': {}, 'f:x': {}}}},
		   {manager: helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:y': {}}, 'f:b': {}, 'f:c': {'.': {}, 'f:y': {}}}}]`,
			`[{manager: operator, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:a': {'.': {}, 'f:y': {}}, 'f:b': {'.': {}, 'f:x': {}}, 'f:c': {'.': {}, 'f:x': {}, 'f:y': {}}}}]`},
		{"the entry of the object's version gives its own", `[{manager: helm, operation: Update, apiVersion: v1beta1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}},
		   {manager: kubectl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:b': {}}}]`,
			`[{manager: operator, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}, 'f:b': {}}}]`},
		{"subresources, others, our own updates and what is of no known format stay", `[{manager: helm, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {'f:s': {}}},
		   {manager: operator, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:o': {}}},
		   {manager: helm, operation: Update, fieldsType: FieldsV2},
		   {manager: helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}, {manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:t': {}}}]`,
			`[{manager: operator, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}, {manager: helm, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {'f:s': {}}},
		   {manager: operator, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:o': {}}},
		   {manager: helm, operation: Update, fieldsType: FieldsV2},
		   {manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:t': {}}}]`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			object := func(entries string) *unstructured.Unstructured {
				var u unstructured.Unstructured
				if err := yaml.Unmarshal([]byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: `+entries+`}}`),
					&u.Object); err != nil {
					t.Fatal(err)
				}
				return &u
			}
			live := object(test.have)
			got := WithFieldsTakenOver(live, "operator", []string{"helm", "kubectl", "operator"})
			must.Same(t, object(test.have).Object, live.Object, "the object was changed")
			if test.want == "" {
				if got != live {
					t.Error("nothing was taken over, and yet it is another object")
				}
				return
			}
			must.Same(t, object(test.want).Object, got.Object)
		})
	}
}
