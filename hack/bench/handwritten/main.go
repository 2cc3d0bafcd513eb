// Command handwritten is the operator that a careful engineer would write in Go for the work of the benchmark: typed
// reads from the cache, one apply, one status update, and nothing if the objects are in sync.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/hack/bench/work"
)

const (
	name    = "handwritten"
	workers = 10
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), work.ParseFlags()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o work.Options) error {
	log.SetLogger(zap.New())
	cfg, err := o.Config()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, work.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: o.Metrics}, PprofBindAddress: o.Pprof,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}, SyncPeriod: &o.Resync},

		LeaderElection: o.Lease != "", LeaderElectionID: o.Lease, LeaderElectionNamespace: o.Namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	r := &reconciler{mgr.GetClient()}
	warm := true // a standby has its caches
	err = ctrl.NewControllerManagedBy(mgr).Named(name).For(&work.Widget{}).Owns(&corev1.ConfigMap{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.readers)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, EnableWarmup: &warm}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	return mgr.Start(ctx)
}

type reconciler struct{ client.Client }

// readers are the Widgets that read a ConfigMap.
func (r *reconciler) readers(ctx context.Context, configMap client.Object) []ctrl.Request {
	if configMap.GetName() != work.Settings {
		return nil
	}
	widgets := &work.WidgetList{}
	err := r.List(ctx, widgets, client.InNamespace(configMap.GetNamespace()),
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "listing the readers")
	}
	requests := make([]ctrl.Request, len(widgets.Items))
	for i := range widgets.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&widgets.Items[i])
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	widget := &work.Widget{}
	if err := r.Get(ctx, req.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	settings := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: work.Settings}, settings); err != nil {
		return ctrl.Result{}, err
	}
	region := settings.Data["region"]
	live := &corev1.ConfigMap{}
	if err := client.IgnoreNotFound(r.Get(ctx, req.NamespacedName, live)); err != nil {
		return ctrl.Result{}, err
	}
	if !inSync(widget, live, region) {
		if err := r.Apply(ctx, desired(widget, region), client.FieldOwner(name), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}
	changed := meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: widget.Generation,
	})
	if !changed && widget.Status.ObservedGeneration == widget.Generation {
		return ctrl.Result{}, nil
	}
	widget.Status.ObservedGeneration = widget.Generation
	return ctrl.Result{}, r.Status().Update(ctx, widget)
}

func inSync(widget *work.Widget, live *corev1.ConfigMap, region string) bool {
	return maps.Equal(live.Data, widget.Spec.Data) && live.Labels[work.ManagedLabel] == name &&
		live.Annotations[work.RegionAnnotation] == region && metav1.IsControlledBy(live, widget)
}

func desired(widget *work.Widget, region string) *applycorev1.ConfigMapApplyConfiguration {
	owner := applymetav1.OwnerReference().WithAPIVersion(work.GroupVersion.String()).WithKind("Widget").
		WithName(widget.Name).WithUID(widget.UID).WithController(true)
	return applycorev1.ConfigMap(widget.Name, widget.Namespace).
		WithLabels(map[string]string{work.ManagedLabel: name}).
		WithAnnotations(map[string]string{work.RegionAnnotation: region}).
		WithOwnerReferences(owner).WithData(widget.Spec.Data)
}
