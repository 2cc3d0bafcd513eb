package backup_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// Into a changed schema, a dry run says what the restore does: the API server refuses one object, and drops a field of the others.
func TestDryRunIntoAnotherSchema(t *testing.T) {
	t.Parallel()
	memory(t)
	w := &world{t: t, group: testkit.Unique(t) + ".example.com", ns: testkit.Namespace(t)}
	definition := strings.NewReplacer("group: example.com", "group: "+w.group, "shops.example.com", "shops."+w.group).Replace(shopDefinition)
	testkit.InstallCRDs(t, definition)
	gvr := schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "shops"}
	for i, name := range []string{"a", "b", "c"} {
		w.apply(gvr, w.ns, map[string]any{"apiVersion": w.group + "/v1", "kind": "Shop", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"count": int64(i), "old": "o", "tls": map[string]any{}}})
		testkit.Patch(t, gvr, w.ns, name, "operator", `{"status": {"phase": "x", "old": "o"}}`, "status")
	}
	b := w.backup(testkit.Config(t))
	b.Kinds = []backup.Selection{{GVK: gvr.GroupVersion().WithKind("Shop"), Resource: "shops", Namespaced: true, HasStatus: true, Custom: true,
		Namespaces: []string{w.ns}, Choices: []backup.Choice{{}}}}
	path := filepath.Join(t.TempDir(), "backup")
	if _, _, err := b.Run(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		testkit.Delete(t, gvr, w.ns, name)
	}
	testkit.Apply(t, "", strings.NewReplacer("old: {type: string}\n                x:", "x:", ", old: {type: string}}", "}",
		"count: {type: integer}", "count: {type: integer, maximum: 1}").Replace(definition))
	testkit.Eventually(t, patience, func() (bool, string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.group + "/v1", "kind": "Shop",
			"metadata": map[string]any{"name": "probe"}, "spec": map[string]any{"count": int64(2)}}}
		_, err := testkit.Dynamic(t).Resource(gvr).Namespace(w.ns).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil, "the schema is not in force yet"
	})
	dry := w.restore(testkit.Config(t), path, backup.Fail)
	dry.DryRun = true
	_, would, err := run(t.Context(), dry)
	if err != nil || len(testkit.List(t, gvr, w.ns, "")) > 0 {
		t.Fatalf("the dry run: %+v: %v", would, err)
	}
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err != nil {
		t.Fatal(err)
	}
	const lost = " is lost: the API server drops \"o\""
	for what, r := range map[string]*backup.Result{"dry": would, "real": result} {
		// the restore reports the status of all objects at the end
		text := fmt.Sprint(r.Changed)
		if r.Created != 2 || r.Finished != 2 || len(r.Refused) != 1 || !strings.Contains(r.Refused[0].String(), "spec.count") ||
			len(r.Changed) != 4 || strings.Count(text, ".spec.old"+lost) != 2 || strings.Count(text, ".status.old"+lost) != 2 {
			t.Errorf("the %s run: %+v", what, r)
		}
	}
}
