//go:build controlplane

package examples_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

var (
	autoscalers     = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	ingresses       = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	services        = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	certificates    = schema.GroupVersionResource{Group: "certificates.example.com", Version: "v1", Resource: "certificates"}
	statefulSets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	externalSecrets = schema.GroupVersionResource{Group: "secrets.example.com", Version: "v1", Resource: "externalsecrets"}
)

// network is a resource of what an operator of the cloud has.
func network(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "network.example.com", Version: "v1", Resource: resource}
}

// controllers are what other controllers do with an object at each change: all goes well at once. What fails is done at the
// next look.
func controllers(t *testing.T) map[schema.GroupVersionResource]func(u *unstructured.Unstructured) {
	t.Helper()
	client := testkit.Dynamic(t)
	report := func(gvr schema.GroupVersionResource, u *unstructured.Unstructured, status map[string]any) {
		u.Object["status"] = status
		_, _ = client.Resource(gvr).Namespace(u.GetNamespace()).UpdateStatus(t.Context(), u, metav1.UpdateOptions{FieldManager: "controller"})
	}
	hold := func(gvr schema.GroupVersionResource, u *unstructured.Unstructured, finalizers ...string) {
		u.SetFinalizers(finalizers)
		_, _ = client.Resource(gvr).Namespace(u.GetNamespace()).Update(t.Context(), u, metav1.UpdateOptions{FieldManager: "controller"})
	}
	provide := func(resource, id string) func(u *unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if at(u, ".status.observedGeneration") != u.GetGeneration() {
				report(network(resource), u, map[string]any{"observedGeneration": u.GetGeneration(), "id": id,
					"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
			}
		}
	}
	return map[schema.GroupVersionResource]func(u *unstructured.Unstructured){
		network("vpcs"):           provide("vpcs", "vpc-1"),
		network("subnets"):        provide("subnets", "subnet-1"),
		network("securitygroups"): provide("securitygroups", "sg-1"),
		replicaSets: func(u *unstructured.Unstructured) {
			n := at(u, ".spec.replicas")
			if at(u, ".status.observedGeneration") != u.GetGeneration() || at(u, ".status.availableReplicas") != n && n != int64(0) {
				report(replicaSets, u, map[string]any{"observedGeneration": u.GetGeneration(), "replicas": n,
					"fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n})
			}
		},
		autoscalers: func(u *unstructured.Unstructured) {
			if at(u, ".status.observedGeneration") != u.GetGeneration() {
				report(autoscalers, u, map[string]any{"observedGeneration": u.GetGeneration(), "currentReplicas": at(u, ".spec.minReplicas"),
					"desiredReplicas": at(u, ".spec.minReplicas"), "conditions": []any{
						map[string]any{"type": "AbleToScale", "status": "True"}, map[string]any{"type": "ScalingActive", "status": "True"}}})
			}
		},
		statefulSets: func(u *unstructured.Unstructured) {
			if at(u, ".status.observedGeneration") != u.GetGeneration() {
				report(statefulSets, u, map[string]any{"observedGeneration": u.GetGeneration(), "replicas": int64(1), "readyReplicas": int64(1),
					"currentReplicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1)})
			}
		},
		jobs: func(u *unstructured.Unstructured) {
			if at(u, ".status.completionTime") == nil {
				report(jobs, u, jobStatus(true))
			}
		},
		buckets: func(u *unstructured.Unstructured) {
			switch {
			case u.GetDeletionTimestamp() != nil:
				hold(buckets, u)
			case len(u.GetFinalizers()) == 0:
				hold(buckets, u, "storage.example.com/content")
			case at(u, ".status.observedGeneration") != u.GetGeneration():
				report(buckets, u, map[string]any{"observedGeneration": u.GetGeneration(), "endpoint": "https://" + u.GetName() + ".example.com",
					"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
			}
		},
		externalSecrets: func(u *unstructured.Unstructured) {
			if synced := fmt.Sprintf("%d-0a1b2c", u.GetGeneration()); at(u, ".status.syncedResourceVersion") != synced {
				report(externalSecrets, u, map[string]any{"syncedResourceVersion": synced, "binding": map[string]any{"name": at(u, ".spec.target.name")},
					"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
			}
		},
	}
}
