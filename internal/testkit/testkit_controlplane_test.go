//go:build controlplane

package testkit_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// crdTemplate is a small CRD; its arguments are the plural and the kind.
const crdTemplate = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.tools.example.com
spec:
  group: tools.example.com
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]s}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
            status: {type: object, properties: {size: {type: integer}}}
`

var (
	gadgets    = fmt.Sprintf(crdTemplate, "gadgets", "Gadget")
	gadgetsGVR = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "gadgets"}
	widgetsGVR = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "widgets"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}
`

func TestServerVersion(t *testing.T) {
	t.Parallel()
	client, err := discovery.NewDiscoveryClientForConfig(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion == "" || strings.ContainsAny(version.GitVersion, "+$") || strings.HasPrefix(version.GitVersion, "v0.") {
		t.Errorf("the server calls itself %q, which is no release", version.GitVersion)
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	if found := testkit.Find(t, configMaps, ns, "settings"); found != nil {
		t.Fatalf("found %v before it was made", found)
	}
	testkit.Apply(t, ns, configMap)
	testkit.Update(t, configMaps, ns, "settings", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"seen": "yes"})
	})
	testkit.Patch(t, configMaps, ns, "settings", "someone", `{"data":{"shape":"round"}}`)
	got := testkit.Get(t, configMaps, ns, "settings")
	data, _, _ := unstructured.NestedStringMap(got.Object, "data")
	if data["color"] != "green" || data["shape"] != "round" || got.GetLabels()["seen"] != "yes" {
		t.Errorf("the object is %v", got.Object)
	}
	if n := len(testkit.List(t, configMaps, ns, "seen=yes")); n != 1 {
		t.Errorf("%d objects have the label, not one", n)
	}
	testkit.Delete(t, configMaps, ns, "settings")
	testkit.Delete(t, configMaps, ns, "settings") // gone already, which is not an error
	if found := testkit.Find(t, configMaps, ns, "settings"); found != nil {
		t.Errorf("found %v after it was deleted", found)
	}
}

func TestInstallCRDs(t *testing.T) {
	t.Parallel()
	testkit.InstallCRDs(t, fmt.Sprintf(crdTemplate, "widgets", "Widget"))
	ns := testkit.Namespace(t)
	widget := testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 3}}")
	if size, _, _ := unstructured.NestedInt64(widget.Object, "spec", "size"); size != 3 {
		t.Errorf("the widget is %v", widget.Object)
	}
	testkit.Patch(t, widgetsGVR, ns, "a", "someone", `{"status":{"size":4}}`, "status")
	if size, _, _ := unstructured.NestedInt64(testkit.Get(t, widgetsGVR, ns, "a").Object, "status", "size"); size != 4 {
		t.Errorf("the status holds size %d", size)
	}
}

func TestControllers(t *testing.T) {
	t.Parallel()
	var ns string
	t.Run("garbage collector", func(t *testing.T) {
		ns = testkit.Namespace(t)
		owner := testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Gadget, metadata: {name: owner}}")
		testkit.Apply(t, ns, fmt.Sprintf(
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: child, ownerReferences: "+
				"[{apiVersion: tools.example.com/v1, kind: Gadget, name: owner, uid: %s}]}}", owner.GetUID()))
		testkit.Delete(t, gadgetsGVR, ns, "owner")
		testkit.Eventually(t, testkit.Patience, func() (bool, string) {
			return testkit.Find(t, configMaps, ns, "child") == nil, "the child of a deleted owner is there"
		})
	})
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		return testkit.Find(t, namespaces, "", ns) == nil, "the namespace of a test that ended is there"
	})
}

// TestRightsInForce: rights are in force immediately after the call, every time.
func TestRightsInForce(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	for range 10 {
		name := testkit.Unique(t)
		testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %s}, "+
			"rules: [{apiGroups: [''], resources: [configmaps], verbs: [list]}]}", name))
		testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s}, "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}, subjects: [{kind: User, name: %[1]s}]}", name))
		if err := testkit.RightsInForce(t.Context()); err != nil {
			t.Fatal(err)
		}
		config := testkit.Config(t)
		config.Impersonate.UserName = name
		if _, err := newClient(t, config).Resource(configMaps).Namespace(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	testkit.Apply(t, ns, configMap)
	config := testkit.User(t, "reader", rbacv1.PolicyRule{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
	})
	// through the kubeconfig file, as a command connects
	config, err := clientcmd.BuildConfigFromFlags("", testkit.KubeconfigFor(t, config))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(configMaps).Namespace(ns).Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("reading is allowed, but: %v", err)
	}
	err = client.Resource(configMaps).Namespace(ns).Delete(t.Context(), "settings", metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("deleting is not allowed, but: %v", err)
	}
}
