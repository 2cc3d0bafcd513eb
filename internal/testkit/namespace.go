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

// counter makes names unique within one test binary, which has the API server
// to itself.
var counter atomic.Int64

// maxSlug leaves room for a suffix in a DNS label of 63 characters.
const maxSlug = 50

// Namespace creates a namespace that is named after the test and returns its
// name. It is deleted when the test ends; without Namespaces among the
// controllers it stays in Terminating, which harms no other test.
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
	t.Cleanup(func() { // the test's own context has ended by now
		if err := client.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Log(err)
		}
	})
	return name
}

// Unique returns a DNS label made from the test's name that no other call in
// this test binary returns: for cluster-scoped objects.
func Unique(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s-%d", slug(t.Name()), counter.Add(1))
}

// slug turns a test's name into the beginning of a DNS label.
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
