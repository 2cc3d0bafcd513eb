package testkit

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// Mirror keeps the objects of a resource in memory, for tests that read them very often. It may lag.
type Mirror struct {
	objects cache.Indexer
}

// NewMirror watches a resource until the test ends. Unless it is nil, seen is called sequentially for each object at
// every change and every second; it must not change the object.
func NewMirror(t testing.TB, gvr schema.GroupVersionResource, seen func(*unstructured.Unstructured)) *Mirror {
	t.Helper()
	informer := dynamicinformer.NewDynamicSharedInformerFactory(Dynamic(t), time.Second).ForResource(gvr).Informer()
	if seen != nil {
		call := func(o any) {
			if u, ok := o.(*unstructured.Unstructured); ok {
				seen(u)
			}
		}
		handler := cache.ResourceEventHandlerFuncs{AddFunc: call, UpdateFunc: func(_, o any) { call(o) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatalf("%s cannot be watched", gvr.Resource)
	}
	return &Mirror{objects: informer.GetIndexer()}
}

// In returns the objects of a namespace; for a cluster-scoped resource it is "". They must not be changed.
func (m *Mirror) In(namespace string) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	objects := m.objects.List()
	if namespace != "" {
		objects, _ = m.objects.ByIndex(cache.NamespaceIndex, namespace) // the factory's informers have this index
	}
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok {
			list = append(list, u)
		}
	}
	return list
}
