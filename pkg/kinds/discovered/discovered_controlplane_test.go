//go:build controlplane

package discovered

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

var appoperator = schema.GroupVersionKind{Group: "tools.example.com", Version: "v1beta1", Kind: "Appoperator"}

func TestMain(m *testing.M) { testkit.Main(m, testkit.WithCRDs("../testdata/crds")) }

// TestServerKinds: a user without rights gets the same custom and built-in kinds as from files, with schemas.
func TestServerKinds(t *testing.T) {
	cluster := must.Get(New(testkit.User(t, testkit.Unique(t)))).In(t)
	k := must.Get(cluster.Kind(appoperator)).In(t)
	if k.GVR.Resource != "appoperators" || !k.Namespaced || !k.HasStatus {
		t.Errorf("got %+v", k)
	}
	if k.Schema == nil {
		t.Fatal(k.SchemaErr)
	}
	testkit.CheckAppoperatorSchema(t, k.Schema)
	if !k.Schema.Properties["metadata"].Properties["name"].Type.Contains("string") {
		t.Error("the reference to metadata is not resolved")
	}

	deployment := must.Get(cluster.Kind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})).In(t)
	conditions := deployment.Schema.Properties["status"].Properties["conditions"]
	if kind, _ := conditions.Extensions.GetString("x-kubernetes-list-type"); kind != "map" || !deployment.HasStatus {
		t.Errorf("conditions of a Deployment are a list of type %q, and its status a subresource: %v", kind, deployment.HasStatus)
	}
	port := deployment.Schema.Properties["spec"].Properties["strategy"].Properties["rollingUpdate"].Properties["maxSurge"]
	must.Same(t, "int-or-string", port.Format, "maxSurge has the format", "want int-or-string")
}

func TestServerVersion(t *testing.T) {
	cluster := must.Get(New(testkit.Config(t))).In(t)
	v := must.Get(cluster.Version()).In(t)
	if v.Major() != 1 || v.Minor() < 30 {
		t.Errorf("got version %v", v)
	}
}
