package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestOwnersGoFromTheLast: indexes in a patch stay right.
func TestOwnersGoFromTheLast(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{"uid": "mine"}, map[string]any{"uid": "theirs"}, map[string]any{"uid": "mine"}}}}}
	var p jsonPatch
	p.removeOwners(live, "mine")
	got := must.Get(encode([]any(p))).In(t)
	want := `[{"op":"remove","path":"/metadata/ownerReferences/2"},{"op":"remove","path":"/metadata/ownerReferences/0"}]`
	if string(got) != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
	p = nil
	if p.removeOwners(live, ""); len(p) != 0 {
		t.Error("owners are removed though none is ours")
	}
}

// TestEntriesGoFromTheLast: the same for managedFields with another manager's entry among ours.
func TestEntriesGoFromTheLast(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{
		map[string]any{"manager": "operator", "operation": "Apply"},
		map[string]any{"manager": "other", "operation": "Update"},
		map[string]any{"manager": "operator", "operation": "Update"}}}}}
	var p jsonPatch
	p.removeManagers(live, []string{"operator"})
	got := must.Get(encode([]any(p))).In(t)
	want := `[{"op":"remove","path":"/metadata/managedFields/2"},{"op":"remove","path":"/metadata/managedFields/0"}]`
	if string(got) != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
}
