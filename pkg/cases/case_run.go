package cases

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	reports "github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// caseRun runs one case: a cluster in memory at a point in time, and the reconciler of `corollary run` for it.
type caseRun struct {
	compile.Compiled
	kinds      *caseKinds
	cluster    *memcluster.Cluster
	client     dynamic.Interface
	reconciler *reconcile.Reconciler
	upstream   *unstructured.Unstructured
	transport  *transport
	cache      *cache
}

// newRun makes a run without objects.
func (c *testCase) newRun(compiled compile.Compiled, known *caseKinds, upstream *unstructured.Unstructured,
	now time.Time) (*caseRun, error) {
	w := &caseRun{Compiled: compiled, kinds: known, upstream: upstream}
	var err error
	w.cluster, err = memcluster.New(known.definitions, memcluster.WithAnyNamespace(),
		memcluster.WithClock(func() time.Time { return now }))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	cfg := w.cluster.Config()
	w.transport = &transport{cluster: w.cluster, immutable: map[string]bool{}, written: map[string]bool{}}
	cfg.Transport = apply.KeepAnswers(w.transport)
	if w.client, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, err
	}
	w.cache = &cache{testCase: c, pipeline: compiled.Pipeline, cluster: w.cluster}
	watch := compiled.Pipeline.Config.Watch
	w.reconciler = &reconcile.Reconciler{
		Operator: reports.Operator{Name: compiled.Pipeline.Name, Log: logr.Discard(), Recorder: &events.FakeRecorder{}},
		Pipeline: compiled.Pipeline,
		Client:   apply.New(w.client, compiled.Pipeline.Config.Conventions.FieldManager), Cache: w.cache,
		Kinds: known, Host: host{}, Selection: reconcile.Selection{Selector: labels.Everything()}, Now: func() time.Time {
			return now
		},
	}
	if watch.LabelSelector != nil {
		if w.reconciler.Selector, err = metav1.LabelSelectorAsSelector(watch.LabelSelector); err != nil {
			return nil, err // the loader refuses such a config
		}
	}
	// labels that the case does not set are assumed to match
	if watch.NamespaceSelector != nil && c.namespaceLabels != nil {
		w.reconciler.NamespaceSelector, err = metav1.LabelSelectorAsSelector(watch.NamespaceSelector)
	}
	return w, err
}

func (w *caseRun) upstreamRef() operator.Ref {
	return operator.Ref{Namespace: w.upstream.GetNamespace(), Name: w.upstream.GetName()}
}

// kindOf returns a kind that the cluster serves.
func (w *caseRun) kindOf(u *unstructured.Unstructured) (*kinds.Kind, error) {
	return w.kinds.Kind(u.GroupVersionKind())
}

// resource returns the client for objects of a kind.
func (w *caseRun) resource(kind *kinds.Kind, namespace string) dynamic.ResourceInterface {
	if !kind.Namespaced {
		return w.client.Resource(kind.GVR)
	}
	return w.client.Resource(kind.GVR).Namespace(namespace)
}

// put stores an object as it is; a namespaced object without a namespace is in the upstream's.
func (w *caseRun) put(object map[string]any) error {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	kind, err := w.kindOf(u)
	if err != nil {
		return err
	}
	if u.Object, err = canonical.FormWithNulls(u.Object); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	kind.DropNulls(u.Object)
	switch {
	case !kind.Namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(w.defaultNamespace())
	}
	_, err = w.cluster.Put(u)
	return err
}

// putUpstream stores the upstream, and returns it as it is stored.
func (w *caseRun) putUpstream(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if w.Pipeline.HasRows() { // which no API server has
		row, err := w.Pipeline.RowOf(u.DeepCopy()) // it may have been changed
		w.cache.row = row
		return row, err
	}
	return w.cluster.Put(u)
}

// defaultNamespace returns the namespace of objects without one.
func (w *caseRun) defaultNamespace() string {
	if ns := w.upstream.GetNamespace(); ns != "" {
		return ns
	}
	return "default"
}

// host implements reconcile.Host: there is no guard and no other process.
type host struct{}

// Enqueue implements reconcile.Host.
func (host) Enqueue(operator.Ref) {}

// RecheckKinds implements reconcile.Host.
func (host) RecheckKinds() {}

// Rollout implements reconcile.Host: everything is moved at once.
func (host) Rollout() *rollout.Rollout { return nil }

// Trails implements reconcile.Host.
func (host) Trails() (trails, keeps bool) { return false, false }

// CountedByGuard implements reconcile.Host.
func (host) CountedByGuard(operator.Ref) bool { return false }

// MayProceed implements reconcile.Host.
func (host) MayProceed(operator.Ref, guard.Counted, bool) bool { return true }

// GuardWaits implements reconcile.Host.
func (host) GuardWaits() bool { return false }

// Deselects implements reconcile.Host.
func (host) Deselects(schema.GroupKind, operator.Ref, map[string]any) int { return 0 }

// DeletesLater implements reconcile.Host.
func (host) DeletesLater(operator.Ref, bool) time.Duration { return 0 }

// ReportShared implements reconcile.Host.
func (host) ReportShared(string, string) {}
