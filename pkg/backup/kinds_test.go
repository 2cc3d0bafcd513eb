package backup_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// An owner and what it owns may be of one kind, and be listed in either order.
func TestOwnerOfTheSameKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for owner, owned := range map[string][2]string{"a": {"b", "c"}, "z": {"y", "x"}, "m": {"l", "n"}, "p": {"r", "q"}} {
		u := w.apply(configMaps, w.ns, map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": owner, "labels": map[string]any{"example.com/upstream": "yes"}}})
		for _, owned := range owned {
			u = w.apply(configMaps, w.ns, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": owned,
				"annotations": map[string]any{ownedBy: w.ns + "/" + u.GetName() + "/" + string(u.GetUID())}}})
		}
	}
	w.configMap(w.ns, "of-nobody", map[string]any{})
	b := w.backup(testkit.Config(t))
	selector := labels.SelectorFromSet(labels.Set{"example.com/upstream": "yes"})
	b.Operators = []backup.Operator{{Name: "operator", Upstream: "configmaps", Owners: []string{ownedBy}}}
	b.Kinds = []backup.Selection{{GVK: configMaps.GroupVersion().WithKind("ConfigMap"), Resource: "configmaps", Namespaced: true,
		Namespaces: []string{w.ns}, Choices: []backup.Choice{{Selector: selector}, {Owned: true}}}}
	m, _, err := b.Run(t.Context(), filepath.Join(t.TempDir(), "backup"))
	if err != nil || m.Kinds[0].Objects != 12 {
		t.Errorf("%+v: %v", m, err)
	}
}
