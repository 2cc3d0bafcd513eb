//go:build controlplane

package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/corollary-dev/corollary/internal/testkit"
)

var (
	appoperator = schema.GroupVersionKind{Group: "tools.example.com", Version: "v1beta1", Kind: "Appoperator"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// TestServerKinds: a user without rights gets the same custom and built-in kinds as from files, with schemas.
func TestServerKinds(t *testing.T) {
	cluster, err := Live(testkit.User(t, testkit.Unique(t)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := cluster.Kind(appoperator)
	if err != nil {
		t.Fatal(err)
	}
	if k.GVR.Resource != "appoperators" || !k.Namespaced || !k.HasStatus {
		t.Errorf("got %+v", k)
	}
	if k.Schema == nil {
		t.Fatal(k.SchemaErr)
	}
	checkAppoperatorSchema(t, k.Schema)
	if !k.Schema.Properties["metadata"].Properties["name"].Type.Contains("string") {
		t.Error("the reference to metadata is not resolved")
	}

	deployment, err := cluster.Kind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	conditions := deployment.Schema.Properties["status"].Properties["conditions"]
	if kind, _ := conditions.Extensions.GetString("x-kubernetes-list-type"); kind != "map" || !deployment.HasStatus {
		t.Errorf("conditions of a Deployment are a list of type %q, and its status a subresource: %v", kind, deployment.HasStatus)
	}
	port := deployment.Schema.Properties["spec"].Properties["strategy"].Properties["rollingUpdate"].Properties["maxSurge"]
	if port.Format != "int-or-string" {
		t.Errorf("maxSurge has the format %q, want int-or-string", port.Format)
	}
}

func TestServerUnknownKinds(t *testing.T) {
	cluster, err := Live(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	for reason, gvk := range map[string]schema.GroupVersionKind{
		"a group that is not there":    {Group: "other.example.com", Version: "v1", Kind: "Thing"},
		"a version that is not there":  {Group: "apps", Version: "v9", Kind: "Deployment"},
		"a version that is not served": {Group: "tools.example.com", Version: "v1alpha1", Kind: "Appoperator"},
		"a kind that is not there":     {Group: "apps", Version: "v1", Kind: "Deploymnt"},
		"a core kind":                  {Version: "v1", Kind: "Confgmap"},
	} {
		if _, err := cluster.Kind(gvk); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %v, want ErrUnknown", reason, err)
		}
	}
}

// TestServerGone: an unreachable API server is not an unknown kind.
func TestServerGone(t *testing.T) {
	config := *testkit.Config(t)
	faults := testkit.NewFaults()
	faults.Drop(testkit.On("GET", ""))
	cluster, err := Live(faults.Wrap(&config))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kind(appoperator); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want an error that is not ErrUnknown", err)
	}
}

// TestServerKindComesAndGoes: a kind is found once its definition is installed, with its schema soon after, and is unknown
// after the definition is deleted and the cache invalidated.
func TestServerKindComesAndGoes(t *testing.T) {
	cluster, err := Live(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: "later.example.com", Version: "v1", Kind: "Later"}
	if _, err := cluster.Kind(gvk); !errors.Is(err, ErrUnknown) {
		t.Fatalf("got %v before the definition is there", err)
	}
	testkit.Apply(t, "", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: laters.later.example.com}
spec:
  group: later.example.com
  names: {kind: Later, plural: laters}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: string}}}}}]`)
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		k, err := cluster.Kind(gvk)
		if err != nil {
			return false, err.Error()
		}
		return k.Schema != nil && !k.Namespaced && !k.HasStatus, "no schema yet"
	})
	testkit.Delete(t, definitions, "", "laters.later.example.com")
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		left := testkit.Find(t, definitions, "", "laters.later.example.com")
		if left == nil {
			return true, ""
		}
		return false, fmt.Sprintf("the definition is still there: finalizers %v, conditions %v", left.GetFinalizers(), left.Object["status"])
	})
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		cluster.Invalidate(gvk)
		k, err := cluster.Kind(gvk)
		return errors.Is(err, ErrUnknown), fmt.Sprintf("the API server still serves the kind of a definition that is gone: %v, %v", k, err)
	})
}

// statusCameLater are the kinds that have a status in client-go's version of Kubernetes, but not in the older one of the
// control plane.
var statusCameLater = map[string]bool{"CSINode": true}

// TestServerBuiltins compares the table of built-in kinds with discovery.
func TestServerBuiltins(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	var lists []*metav1.APIResourceList
	testkit.Eventually(t, testkit.Patience, func() (bool, string) { // a group without kinds is listed for a while, and cannot be read
		var err error
		if _, lists, err = client.ServerGroupsAndResources(); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	source, err := Offline()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(gv.Group, ".example.com") {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			compared++
			k, err := source.Kind(gv.WithKind(r.Kind))
			if err != nil {
				t.Error(err)
				continue
			}
			status := slices.ContainsFunc(list.APIResources, func(o metav1.APIResource) bool { return o.Name == r.Name+"/status" })
			status = status || statusCameLater[r.Kind]
			if k.Namespaced != r.Namespaced || k.GVR.Resource != r.Name || k.HasStatus != status {
				t.Errorf("%s %s: offline %s namespaced %v status %v, served %s %v %v", gv, r.Kind,
					k.GVR.Resource, k.Namespaced, k.HasStatus, r.Name, r.Namespaced, status)
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d kinds were compared", compared)
	}
}

func TestServerVersion(t *testing.T) {
	cluster, err := Live(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := cluster.Version()
	if err != nil {
		t.Fatal(err)
	}
	if v.Major() != 1 || v.Minor() < 30 {
		t.Errorf("got version %v", v)
	}
}
