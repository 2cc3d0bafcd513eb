package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// simulateDeploymentController sets the status of a Deployment whose rollout is done, as its controller would when the
// pods are Ready.
func (s *environment) simulateDeploymentController(ctx context.Context, name string, replicas int64) error {
	live, err := s.in(deployments).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	s.console.note("no controller of Deployments runs here: the demo writes the Deployment's status in its place")
	return s.patch(ctx, deployments, name,
		fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%[2]d,"readyReplicas":%[2]d,`+
			`"availableReplicas":%[2]d,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`,
			live.GetGeneration(), replicas), "status")
}

// simulateGarbageCollector deletes the dependents of an owner that is gone, if there is no kube-controller-manager.
func (s *environment) simulateGarbageCollector(ctx context.Context) error {
	if s.hasManager {
		return nil
	}
	there := map[types.UID]bool{}
	for _, kind := range allKinds {
		list, err := s.in(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			there[list.Items[i].GetUID()] = true
		}
		for i := range list.Items {
			owners := list.Items[i].GetOwnerReferences()
			if len(owners) == 0 || there[owners[0].UID] {
				continue
			}
			if err := s.in(kind).Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{}); err != nil &&
				!apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
