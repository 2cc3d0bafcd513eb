package command

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/config/common"
)

// Decide writes what a person decides to the one key of a ConfigMap, as a field manager: who shares the ConfigMap keeps
// what is theirs. The ConfigMap is created if it is missing.
func Decide(ctx context.Context, client dynamic.Interface, at *common.Confirm, decision, manager string) error {
	cm := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": at.Namespace, "name": at.ConfigMap},
		"data":     map[string]any{at.Key: decision},
	}}
	_, err := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(at.Namespace).
		Apply(ctx, at.ConfigMap, cm, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return fmt.Errorf("writing key %s of ConfigMap %s/%s: %w", at.Key, at.Namespace, at.ConfigMap, err)
	}
	return nil
}
