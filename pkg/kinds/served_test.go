package kinds_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

func TestServerUnknownKinds(t *testing.T) {
	cluster := must.Get(discovered.New(bubble.Serve(t, "testdata/crds/appoperators.yaml"))).In(t)
	for reason, gvk := range map[string]schema.GroupVersionKind{
		"a group that is not there":    {Group: "other.example.com", Version: "v1", Kind: "Thing"},
		"a version that is not there":  {Group: "apps", Version: "v9", Kind: "Deployment"},
		"a version that is not served": {Group: "tools.example.com", Version: "v1alpha1", Kind: "Appoperator"},
		"a kind that is not there":     {Group: "apps", Version: "v1", Kind: "Deploymnt"},
		"a core kind":                  {Version: "v1", Kind: "Confgmap"},
	} {
		if _, err := cluster.Kind(gvk); !errors.Is(err, kinds.ErrUnknown) {
			t.Errorf("%s: got %v, want ErrUnknown", reason, err)
		}
	}
}

// TestServerKindComesAndGoes: a kind is found once its definition is installed, with its schema soon after, and is
// unknown after the definition is deleted and the cache invalidated.
func TestServerKindComesAndGoes(t *testing.T) {
	cluster := must.Get(discovered.New(bubble.Serve(t, "testdata/crds/appoperators.yaml"))).In(t)
	gvk := schema.GroupVersionKind{Group: "later.example.com", Version: "v1", Kind: "Later"}
	if _, err := cluster.Kind(gvk); !errors.Is(err, kinds.ErrUnknown) {
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
	testkit.Delete(t, kinds.DefinitionResource, "", "laters.later.example.com")
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		left := testkit.Find(t, kinds.DefinitionResource, "", "laters.later.example.com")
		if left == nil {
			return true, ""
		}
		return false, fmt.Sprintf("the definition is still there: finalizers %v, conditions %v", left.GetFinalizers(), left.Object["status"])
	})
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		cluster.Invalidate(gvk)
		k, err := cluster.Kind(gvk)
		return errors.Is(err, kinds.ErrUnknown), fmt.Sprintf("the API server still serves the kind of a definition that is gone: %v, %v", k, err)
	})
}
