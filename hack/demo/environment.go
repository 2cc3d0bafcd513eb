package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

const (
	namespace = "default"
	// demoManager is the field manager of the demo's own writes.
	demoManager = "somebody"
	// pollInterval is the polling interval, which limits the precision of the times.
	pollInterval = 5 * time.Millisecond
)

// The kinds of the demo.
var (
	websites    = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "websites"}
	pages       = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "pages"}
	apps        = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1beta1", Resource: "appoperators"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// environment is the environment of the steps.
type environment struct {
	console *printer
	plane   *controlplane.ControlPlane
	child   *child
	client  dynamic.Interface
	// hasManager is false if there is no kube-controller-manager: the demo then does its work.
	hasManager bool
}

func newEnvironment(
	console *printer, plane *controlplane.ControlPlane, child *child, hasManager bool,
) (*environment, error) {
	client, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		return nil, fmt.Errorf("preparing a client: %w", err)
	}
	return &environment{console: console, plane: plane, child: child, client: client, hasManager: hasManager}, nil
}

func (s *environment) in(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.client.Resource(kind).Namespace(namespace)
}

// poll calls look until it returns done. At the deadline it returns the last reason.
func poll(ctx context.Context, interval time.Duration, look func() (done bool, why string, err error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		done, why, err := look()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w: %s", ctx.Err(), why)
		case <-ticker.C:
		}
	}
}

// await polls an object until test returns "". test gets nil if there is no such object, and returns the reason to
// continue.
func (s *environment) await(ctx context.Context, kind schema.GroupVersionResource, name string,
	test func(*unstructured.Unstructured) string) (*unstructured.Unstructured, error) {
	var seen *unstructured.Unstructured
	err := poll(ctx, pollInterval, func() (bool, string, error) {
		u, err := s.in(kind).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			u, err = nil, nil
		}
		if err != nil {
			return false, "", err
		}
		seen = u
		why := test(u)
		return why == "", fmt.Sprintf("%s %s: %s", kind.Resource, name, why), nil
	})
	return seen, err
}

// ready returns a test for await: Ready is True for the current generation.
func ready(u *unstructured.Unstructured) string {
	c := condition(u, "Ready")
	if c == nil {
		return "it has no Ready condition yet"
	}
	observed, _, _ := unstructured.NestedInt64(u.Object, "status",
		"observedGeneration")
	if observed != u.GetGeneration() {
		return "its status is about an older generation"
	}
	if c["status"] != "True" {
		return fmt.Sprintf("Ready is %v, %v: %v", c["status"], c["reason"], c["message"])
	}
	return ""
}

// condition returns one condition of an object's status, nil if there is none.
func condition(u *unstructured.Unstructured, conditionType string) map[string]any {
	if u == nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// fromFile reads the first object of a YAML file.
func fromFile(path string) (*unstructured.Unstructured, string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	documents, err := controlplane.Documents(string(text))
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", path, err)
	}
	if len(documents) == 0 {
		return nil, "", errors.New(path + " is empty")
	}
	return documents[0], string(text), nil
}

func (s *environment) create(
	ctx context.Context, kind schema.GroupVersionResource, u *unstructured.Unstructured,
) error {
	_, err := s.in(kind).Create(ctx, u, metav1.CreateOptions{FieldManager: demoManager})
	return err
}

// patch changes an object like kubectl edit.
func (s *environment) patch(
	ctx context.Context, kind schema.GroupVersionResource, name, merge string, subresources ...string,
) error {
	_, err := s.in(kind).Patch(ctx, name, types.MergePatchType, []byte(merge),
		metav1.PatchOptions{FieldManager: demoManager}, subresources...)
	return err
}

// simulateKubelet marks the pods of an application Ready, because no kubelet runs.
func (s *environment) simulateKubelet(ctx context.Context, label string) error {
	list, err := s.in(pods).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if c := condition(pod, "Ready"); c != nil || pod.GetDeletionTimestamp() != nil {
			continue
		}
		err := s.patch(ctx, pods, pod.GetName(), `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
