package engine_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// handwritten is an operator as one would write it in Go for Widget → ConfigMap, which a config observes before it replaces it.
type handwritten struct{ client.Client }

func anyWidget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Widget"}}
}

// Reconcile is the usual: create or update the ConfigMap, and update the status where it changed.
func (h *handwritten) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	w := anyWidget()
	if err := h.Get(ctx, r.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.GetNamespace(), Name: w.GetName()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, h, cm, func() error {
		cm.Data, _, _ = unstructured.NestedStringMap(w.Object, "spec", "data")
		return controllerutil.SetControllerReference(w, cm, h.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	if observed, _, _ := unstructured.NestedInt64(w.Object, "status", "observedGeneration"); observed == w.GetGeneration() {
		return reconcile.Result{}, nil
	}
	w.Object["status"] = map[string]any{"observedGeneration": w.GetGeneration(), "conditions": []any{map[string]any{"type": "Ready", "status": "True",
		"reason": "Ready", "message": "", "observedGeneration": w.GetGeneration(), "lastTransitionTime": "2026-01-02T03:04:05Z"}}}
	return reconcile.Result{}, h.Status().Update(ctx, w)
}

// startHandwritten starts the operator for the objects of a namespace.
func startHandwritten(t testing.TB, cfg *rest.Config, ns string) (stop func()) {
	mgr, err := manager.New(cfg, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logFor(t),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 4, SkipNameValidation: new(true)}})
	if err != nil {
		t.Fatal(err)
	}
	err = builder.ControllerManagedBy(mgr).Named("handwritten").For(anyWidget()).Owns(&corev1.ConfigMap{}).Complete(&handwritten{mgr.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
