package engine_test

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An operator as one would write it in Go for Widget → ConfigMap, which a config observes before it replaces it.

type typedWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              typedSpec   `json:"spec,omitempty"`
	Status            typedStatus `json:"status,omitempty"`
}

type typedSpec struct {
	Data map[string]string `json:"data,omitempty"`
}

type typedStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (w *typedWidget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Data = maps.Clone(w.Spec.Data)
	out.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return &out
}

type typedWidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []typedWidget `json:"items"`
}

func (l *typedWidgetList) DeepCopyObject() runtime.Object {
	out := &typedWidgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*typedWidget))
	}
	return out
}

// handwrittenScheme knows ConfigMaps and Widgets.
func handwrittenScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = corev1.AddToScheme(s)
	gv := schema.GroupVersion{Group: "test.example.com", Version: "v1"}
	s.AddKnownTypeWithName(gv.WithKind("Widget"), &typedWidget{})
	s.AddKnownTypeWithName(gv.WithKind("WidgetList"), &typedWidgetList{})
	metav1.AddToGroupVersion(s, gv)
	return s
}

type handwritten struct{ client.Client }

func addHandwritten(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("handwritten").
		For(&typedWidget{}).Owns(&corev1.ConfigMap{}).Complete(&handwritten{mgr.GetClient()})
}

// Reconcile is the usual: create or update the ConfigMap, set the condition, update the status where it changed.
func (h *handwritten) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	w := &typedWidget{}
	if err := h.Get(ctx, r.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, h, cm, func() error {
		cm.Data = w.Spec.Data
		return controllerutil.SetControllerReference(w, cm, h.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	changed := meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: w.Generation})
	if !changed && w.Status.ObservedGeneration == w.Generation {
		return reconcile.Result{}, nil
	}
	w.Status.ObservedGeneration = w.Generation
	return reconcile.Result{}, h.Status().Update(ctx, w)
}

// startHandwritten starts the operator for the objects of a namespace.
func startHandwritten(t testing.TB, cfg *rest.Config, ns string) (stop func()) {
	mgr, err := manager.New(cfg, manager.Options{Scheme: handwrittenScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logFor(t),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
		Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 4, SkipNameValidation: ptr.To(true)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := addHandwritten(mgr); err != nil {
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
