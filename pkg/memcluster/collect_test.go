package memcluster_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCollectGarbage: it returns what it did.
func TestCollectGarbage(t *testing.T) {
	cluster, client := memory(t)
	gone := configMap("gone", "x")
	gone.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u"}})
	applyTo(t, client, configMapsOf, gone)
	if got, want := cluster.CollectGarbage(), []string{"deleted configmaps default/gone"}; !slices.Equal(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	namespace := object("v1", "Namespace", "", "gone", nil)
	namespace.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolume", Name: "owner", UID: "u"}})
	if _, err := cluster.Put(namespace); err != nil {
		t.Fatal(err)
	}
	want := []string{"deleted (finalizers hold it) namespaces gone", "deleted namespaces gone"}
	if got := cluster.CollectGarbage(); !slices.Equal(got, want) {
		t.Errorf("of a Namespace whose owner is gone it says %q, want %q", got, want)
	}
}
