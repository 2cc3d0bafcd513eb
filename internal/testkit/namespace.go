package testkit

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namespaces is the resource of namespaces.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// counter makes names unique within one test binary, which has its own API server.
var counter atomic.Int64

// maxSlug leaves room for a suffix in a DNS label of 63 characters.
const maxSlug = 50

// Namespace creates a namespace named after the test and returns its name. It is deleted when the test ends; without
// the namespace controller it stays in Terminating, which does not affect other tests.
func Namespace(t testing.TB) string {
	t.Helper()
	name := Unique(t)
	client := shared(t).dynamic.Resource(namespaces)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the context of the test has ended
		if err := client.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Log(err)
		}
	})
	return name
}

// Unique returns a DNS label made from the test's name that is unique in this test binary, for cluster-scoped objects.
func Unique(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s-%d", slug(t.Name()), counter.Add(1))
}

// slug converts a test's name to the start of a DNS label.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == maxSlug {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}
