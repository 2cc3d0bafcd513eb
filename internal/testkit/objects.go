package testkit

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

// clients are the clients of the helpers.
type clients struct {
	config  *rest.Config
	dynamic dynamic.Interface
	typed   client.Client
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	audit   *Counter // what Audit returns; may be nil
}

func newClients(config *rest.Config) (*clients, error) {
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the dynamic client: %w", err)
	}
	typed, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("creating the typed client: %w", err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client: %w", err)
	}
	return &clients{
		config:  config,
		dynamic: untyped,
		typed:   typed,
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder)),
	}, nil
}

// Apply creates or changes an object by server-side apply with the field manager "test" and returns the response. A
// namespace other than "" replaces that of the YAML document. It fails the test on an error; TryApply returns it.
func Apply(t testing.TB, namespace, yaml string) *unstructured.Unstructured {
	t.Helper()
	applied, err := TryApply(t, namespace, yaml)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// TryApply is Apply that returns the error.
func TryApply(t testing.TB, namespace, yaml string) (*unstructured.Unstructured, error) {
	t.Helper()
	object := Parse(t, yaml)
	mapping, err := shared(t).mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", object.GroupVersionKind(), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	} else if namespace == "" {
		namespace = object.GetNamespace()
	}
	object.SetNamespace(namespace)
	return shared(t).dynamic.Resource(mapping.Resource).Namespace(namespace).Apply(t.Context(),
		object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
}

// Parse reads one YAML document as an object; whole numbers become int64.
func Parse(t testing.TB, yaml string) *unstructured.Unstructured {
	t.Helper()
	documents, err := controlplane.Documents(yaml)
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) != 1 {
		t.Fatalf("the text holds %d documents instead of one:\n%s", len(documents), yaml)
	}
	return documents[0]
}

// Get reads an object and fails the test if it does not exist. The namespace of a cluster-scoped object is "".
func Get(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := shared(t).dynamic.Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Find reads an object and returns nil if it does not exist.
func Find(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := shared(t).dynamic.Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// List reads all objects of a namespace ("" for every namespace) with the labels of the selector.
func List(t testing.TB, gvr schema.GroupVersionResource, namespace, selector string) []unstructured.Unstructured {
	t.Helper()
	list, err := shared(t).dynamic.Resource(gvr).Namespace(namespace).
		List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// contended makes Update retry for some seconds.
var contended = wait.Backoff{Steps: 16, Duration: 10 * time.Millisecond, Factor: 1.4, Jitter: 0.1}

// Update reads an object, lets mutate change it and writes it back with the field manager "test", and retries on
// conflicts. With a subresource ("status", for example) it writes that.
func Update(t testing.TB, gvr schema.GroupVersionResource, namespace, name string,
	mutate func(*unstructured.Unstructured), subresources ...string,
) *unstructured.Unstructured {
	t.Helper()
	resource := shared(t).dynamic.Resource(gvr).Namespace(namespace)
	var updated *unstructured.Unstructured
	err := retry.RetryOnConflict(contended, func() error {
		object, err := resource.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		mutate(object)
		updated, err = resource.Update(t.Context(), object, metav1.UpdateOptions{FieldManager: manager}, subresources...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

// Patch sends a JSON merge patch with the given field manager.
func Patch(t testing.TB, gvr schema.GroupVersionResource, namespace, name, fieldManager, json string,
	subresources ...string,
) *unstructured.Unstructured {
	t.Helper()
	patched, err := shared(t).dynamic.Resource(gvr).Namespace(namespace).Patch(t.Context(), name,
		types.MergePatchType, []byte(json), metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// Delete deletes an object in the background; it ignores a missing object.
func Delete(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	DeleteWith(t, gvr, namespace, name, metav1.DeletePropagationBackground)
}

// Vanish takes a custom resource out of etcd, as if an API server had deleted it without looking at its finalizers.
func Vanish(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	key := base64.StdEncoding.EncodeToString([]byte(strings.Join([]string{"/registry", gvr.Group,
		gvr.Resource, namespace, name}, "/")))
	answer, err := http.Post(plane().EtcdURL()+"/v3/kv/deleterange", "application/json", strings.NewReader(`{"key": "`+key+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), `"deleted"`) {
		t.Fatalf("%s/%s is not in etcd: %s %v", namespace, name, text, err)
	}
}

// DeleteWith is Delete with a propagation policy, like `kubectl delete --cascade`.
func DeleteWith(
	t testing.TB, gvr schema.GroupVersionResource, namespace, name string, propagation metav1.DeletionPropagation,
) {
	t.Helper()
	err := shared(t).dynamic.Resource(gvr).Namespace(namespace).Delete(t.Context(), name,
		metav1.DeleteOptions{PropagationPolicy: &propagation})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
