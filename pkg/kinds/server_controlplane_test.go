//go:build controlplane

package kinds

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// statusCameLater are the kinds that have a status in client-go's version of Kubernetes, but not in the older one of
// the control plane.
var statusCameLater = map[string]bool{"CSINode": true}

// TestServerBuiltins compares the table of built-in kinds with discovery.
func TestServerBuiltins(t *testing.T) {
	client := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	var lists []*metav1.APIResourceList
	testkit.Eventually(t, testkit.Patience, func() (bool, string) { // a group without kinds is listed for a while, and cannot be read
		var err error
		if _, lists, err = client.ServerGroupsAndResources(); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	source := must.Get(Offline()).In(t)
	compared := 0
	for _, list := range lists {
		gv := must.Get(schema.ParseGroupVersion(list.GroupVersion)).In(t)
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
