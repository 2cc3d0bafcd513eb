package drift_test

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// clusterScoped are the cluster-scoped kinds of the documents.
var clusterScoped = map[string]bool{"ClusterRole": true, "Namespace": true, "PriorityClass": true}

// plurals are plurals that are not the kind with an s.
var plurals = map[string]string{"NetworkPolicy": "networkpolicies", "Ingress": "ingresses", "PriorityClass": "priorityclasses"}

// memory starts an API server in memory for this test alone, and returns a namespace.
func memory(t *testing.T) string {
	t.Helper()
	bubble.Serve(t, "testdata/crds/drift.example.com.yaml")
	return testkit.Namespace(t)
}

func resourceFor(t *testing.T, ns string, obj map[string]any) dynamic.ResourceInterface {
	t.Helper()
	u := unstructured.Unstructured{Object: obj}
	plural := plurals[u.GetKind()]
	if plural == "" {
		plural = string(bytes.ToLower([]byte(u.GetKind()))) + "s"
	}
	gvr := u.GroupVersionKind().GroupVersion().WithResource(plural)
	if clusterScoped[u.GetKind()] {
		return testkit.Dynamic(t).Resource(gvr)
	}
	return testkit.Dynamic(t).Resource(gvr).Namespace(ns)
}

func apply(t *testing.T, ns, manager string, obj map[string]any) *unstructured.Unstructured {
	t.Helper()
	got := must.Get(tryApply(t, ns, manager, obj)).In(t, "applying:")
	return got
}

func tryApply(t *testing.T, ns, manager string, obj map[string]any) (*unstructured.Unstructured, error) {
	t.Helper()
	u := (&unstructured.Unstructured{Object: obj}).DeepCopy()
	return resourceFor(t, ns, obj).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true})
}
