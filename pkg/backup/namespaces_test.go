package backup_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// A Namespace of the archive is restored with its labels and its owner, though objects in it come before it in the
// archive. One whose owner is in itself is created first, without them.
func TestRestoreOfNamespaces(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"default", "home"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
			operator := operatorWith("")
			o := newOperated(t, operator)
			o.putNamespace("home")
			o.apply(namespaces, "site", fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: home, labels: {example.com/by: site},
				annotations: {example.com/owner: %s/a/%s}}}`, owner, o.shop(owner, "a")))
			o.shop("home", "b")
			b := &backup.Backup{Client: o.client, Operators: []archive.Operator{operator}, Kinds: []backup.Selection{
				{Resource: "shops", Choices: []backup.Choice{{}}, Namespaced: true, HasStatus: true, Custom: true,
					GVK: shops.GroupVersion().WithKind("Shop")},
				{Resource: "namespaces", Choices: []backup.Choice{{Owned: true}}, GVK: namespaces.GroupVersion().WithKind("Namespace")}}}
			path := t.TempDir() + "/backup"
			if _, _, err := b.Run(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{owner + "/a", "home/b"} {
				namespace, name, _ := strings.Cut(at, "/")
				o.remove(shops, namespace, name)
			}
			must.Do(t, o.client.Resource(namespaces).Delete(t.Context(), "home", metav1.DeleteOptions{}))
			o.cluster.CollectGarbage()
			r := o.restore(path, backup.Fail, operator)
			if owner == "home" {
				r.OnConflict = backup.Replace
			}
			_, result := o.run(r)
			if len(result.Refused) > 0 || result.Created+result.Replaced != 3 {
				t.Errorf("created %d, replaced %d, refused %v", result.Created, result.Replaced, result.Refused)
			}
			home := o.get(namespaces, "", "home")
			want := fmt.Sprintf("%s/a/%s", owner, o.get(shops, owner, "a").GetUID())
			if home.GetLabels()["example.com/by"] != "site" || home.GetAnnotations()["example.com/owner"] != want {
				t.Errorf("the Namespace has %v", home.Object["metadata"])
			}
		})
	}
}

// What is in an archived Namespace is restored though the Namespace itself is refused, because its owner is neither
// restored nor in the cluster. The plan says the same, also of what waits for another object in it.
func TestRestoreIntoARefusedNamespace(t *testing.T) {
	t.Parallel()
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	operator := operatorWith("")
	o := newOperated(t, operator)
	o.putNamespace("home")
	o.apply(namespaces, "site", `{apiVersion: v1, kind: Namespace, metadata: {name: home, annotations: {example.com/owner: default/nobody/1-2}}}`)
	o.apply(shops, "author", fmt.Sprintf(`{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: home,
		annotations: {example.com/owner: home/b/%s}}, spec: {count: 1}}`, o.shop("home", "b")))
	b := &backup.Backup{Client: o.client, Operators: []archive.Operator{operator}, Kinds: []backup.Selection{
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
	must.Do(t, o.client.Resource(namespaces).Delete(t.Context(), "home", metav1.DeleteOptions{}))
	o.cluster.CollectGarbage()
	plan, result := o.run(o.restore(path, backup.Skip, operator))
	if result.Created != 2 || len(result.Refused) != 1 || !strings.Contains(result.Refused[0].Text, "its owner") {
		t.Errorf("created %d, refused %v", result.Created, result.Refused)
	}
	if len(plan.Refused) != 1 {
		t.Errorf("the plan refuses %v", plan.Refused)
	}
	o.get(shops, "home", "b")
}
