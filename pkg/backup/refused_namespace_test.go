package backup_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/backup"
)

// After a Namespace is refused, the plan has what is in it restored, as the restore does.
func TestPlanAfterRefusedNamespace(t *testing.T) {
	t.Parallel()
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	operator := operatorWith("")
	o := newOperated(t, operator)
	o.putNamespace("home")
	o.apply(namespaces, "site", `{apiVersion: v1, kind: Namespace, metadata: {name: home, annotations: {example.com/owner: default/nobody/1-2}}}`)
	uid := o.shop("home", "b")
	o.apply(shops, "author", fmt.Sprintf(`{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: home, annotations: {example.com/owner: home/b/%s}}, spec: {count: 1}}`, uid))
	b := &backup.Backup{Client: o.client, Operators: []backup.Operator{operator}, Kinds: []backup.Selection{
		{Resource: "shops", Choices: []backup.Choice{{}}, Namespaced: true, HasStatus: true, Custom: true,
			GVK: shops.GroupVersion().WithKind("Shop")},
		{Resource: "namespaces", Choices: []backup.Choice{{Namespaces: map[string]bool{"": true}}},
			GVK: namespaces.GroupVersion().WithKind("Namespace")}}}
	path := t.TempDir() + "/backup"
	if _, _, err := b.Run(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	o.remove(shops, "home", "a")
	o.remove(shops, "home", "b")
	if err := o.client.Resource(namespaces).Delete(t.Context(), "home", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.cluster.CollectGarbage()
	plan, result := o.run(o.restore(path, backup.Skip, operator))
	t.Logf("plan refused %v; created %d, refused %v", plan.Refused, result.Created, result.Refused)
	if len(plan.Refused) != len(result.Refused) {
		t.Errorf("the plan refuses %d objects, the restore %d", len(plan.Refused), len(result.Refused))
	}
}
