package memcluster_test

import (
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/memcluster"
)

// TestInformer runs a client-go informer through a change, a deletion and a restart of its watch.
func TestInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, err := memcluster.New(nil, memcluster.WithAnyNamespace())
		if err != nil {
			t.Fatal(err)
		}
		client, err := dynamic.NewForConfig(cluster.Config())
		if err != nil {
			t.Fatal(err)
		}
		gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		objects := client.Resource(gvr).Namespace("a")
		object := func(name, value string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": name}, "data": map[string]any{"key": value}}}
		}
		if _, err := objects.Create(t.Context(), object("listed", "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		informer := factory.ForResource(gvr)
		stop := make(chan struct{})
		factory.Start(stop)
		defer factory.Shutdown()
		defer close(stop)
		if !cache.WaitForCacheSync(stop, informer.Informer().HasSynced) {
			t.Fatal("the first list did not come in")
		}
		shows := func(name, value string) {
			t.Helper()
			synctest.Wait()
			u, err := informer.Lister().ByNamespace("a").Get(name)
			if value == "" && err == nil {
				t.Errorf("%s is shown", name)
			} else if value != "" {
				if err != nil {
					t.Fatal(err)
				}
				if have, _, _ := unstructured.NestedString(u.(*unstructured.Unstructured).Object, "data", "key"); have != value {
					t.Errorf("%s is %q, want %q", name, have, value)
				}
			}
		}
		shows("listed", "1")
		if _, err := objects.Create(t.Context(), object("watched", "2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		shows("watched", "2")
		if _, err := objects.Update(t.Context(), object("watched", "3"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		shows("watched", "3")
		cluster.Compact()
		if err := objects.Delete(t.Context(), "listed", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		shows("listed", "")
		shows("watched", "3")
	})
}
