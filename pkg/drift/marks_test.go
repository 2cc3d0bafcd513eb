package drift_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/drift"
)

const (
	markKey  = "drift.example.com/owner"
	ownerUID = "4f0e6c52-4d3f-4a4c-9f0e-1f9d6a3b7c11"
)

var marks = &drift.View{Manager: manager, OwnerAnnotation: markKey}

// marked are objects with both marks, of kinds that the API server stores in different ways; resource is their
// resource.
var marked = []struct {
	reason, resource, yaml string
}{
	{"a built-in kind", "configmaps", "{apiVersion: v1, kind: ConfigMap, data: {key: value}}"},
	{"a kind that a PUT may create", "roles",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"},
	{"a kind with subresources", "deployments",
		`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`},
	{"a custom kind", "typeds", "{apiVersion: drift.example.com/v1, kind: Typed, spec: {granular: {a: '1'}}}"},
}

func markedObject(t *testing.T, yaml, name string) *unstructured.Unstructured {
	t.Helper()
	u := testkit.Parse(t, yaml)
	u.SetName(name)
	u.SetAnnotations(map[string]string{markKey: "a/b/" + ownerUID})
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: ownerUID}})
	return u
}

func resourceOf(client dynamic.Interface, ns string, u *unstructured.Unstructured, plural string) dynamic.ResourceInterface {
	gvk := u.GroupVersionKind()
	return client.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural}).Namespace(ns)
}

// proof returns the marks that are ours according to the API server.
func proof(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	l := live(t, marks, u)
	var says []string
	if len(l.Owners) == 1 && l.Owners[0].Applied {
		says = append(says, "reference")
	}
	if l.MarkApplied {
		says = append(says, "annotation")
	}
	if l.MarkTheirs {
		says = append(says, "theirs")
	}
	return strings.Join(says, " ")
}

// TestServerMarksTaken: if another writer changes a mark, it is not ours any more; a manager that applies the same
// value shares it.
func TestServerMarksTaken(t *testing.T) {
	ns, client := memory(t), testkit.Dynamic(t)
	u := markedObject(t, marked[0].yaml, "taken")
	resource := resourceOf(client, ns, u, "configmaps")
	if _, err := resource.Apply(t.Context(), "taken", u, metav1.ApplyOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	got, err := resource.Apply(t.Context(), "taken", u, metav1.ApplyOptions{FieldManager: "other"})
	if err != nil || proof(t, got) != "reference annotation theirs" {
		t.Errorf("applied by two, it proves %q: %v", proof(t, got), err)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"a/c/%s"},"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q,"controller":true}]}}`, markKey, ownerUID, ownerUID)
	if got = merge(t, ns, "somebody", got, patch); proof(t, got) != "" {
		t.Errorf("changed by a third, it proves %q", proof(t, got))
	}
}
