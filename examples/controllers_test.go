package examples_test

import (
	"cmp"
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
	statefulSets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	externalSecrets = schema.GroupVersionResource{Group: "secrets.example.com", Version: "v1", Resource: "externalsecrets"}
)

// network is a resource of what an operator of the cloud has.
func network(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "network.example.com", Version: "v1", Resource: resource}
}

// controllers are what other controllers do with an object at each change: all goes well at once. What fails is done at
// the next look.
type controllers map[schema.GroupVersionResource]func(u *unstructured.Unstructured)

// reporter returns what writes the status of an object.
func reporter(t *testing.T) func(gvr schema.GroupVersionResource, u *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	client := testkit.Dynamic(t)
	return func(gvr schema.GroupVersionResource, u *unstructured.Unstructured, status map[string]any) {
		u.Object["status"] = status
		_, _ = client.Resource(gvr).Namespace(u.GetNamespace()).UpdateStatus(t.Context(), u, metav1.UpdateOptions{FieldManager: "controller"})
	}
}

// everybody are all controllers, where no kube-controller-manager runs.
func everybody(t *testing.T) controllers {
	t.Helper()
	all, report := others(t), reporter(t)
	all[deployments] = func(u *unstructured.Unstructured) {
		if at(u, ".status.observedGeneration") == u.GetGeneration() {
			return
		}
		n := cmp.Or(at(u, ".spec.replicas"), any(int64(1)))
		report(deployments, u, map[string]any{"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}})
	}
	return all
}

// others are the controllers beside those of kube-controller-manager.
func others(t *testing.T) controllers {
	t.Helper()
	client, report := testkit.Dynamic(t), reporter(t)
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
	return controllers{
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

// jobStatus is that of a Job which has ended.
func jobStatus(well bool) map[string]any {
	now := "2026-01-02T03:04:05Z"
	conditions := func(kinds [2]string, reason, message string) []any {
		var list []any
		for _, kind := range kinds {
			list = append(list, map[string]any{"type": kind, "status": "True", "reason": reason, "message": message,
				"lastProbeTime": now, "lastTransitionTime": now})
		}
		return list
	}
	if well {
		return map[string]any{"startTime": now, "completionTime": now, "succeeded": int64(1), "uncountedTerminatedPods": map[string]any{},
			"ready": int64(0), "terminating": int64(0),
			"conditions": conditions([2]string{"SuccessCriteriaMet", "Complete"}, "CompletionsReached", "Reached expected number of succeeded pods")}
	}
	return map[string]any{"startTime": now, "failed": int64(4), "uncountedTerminatedPods": map[string]any{}, "ready": int64(0), "terminating": int64(0),
		"conditions": conditions([2]string{"FailureTarget", "Failed"}, "BackoffLimitExceeded", "Job has reached the specified backoff limit")}
}
