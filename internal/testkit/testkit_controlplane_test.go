//go:build controlplane

package testkit_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestControlPlane: the server is a release, collects garbage, and removes the namespace of a test that ended.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	client := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	version, err := client.ServerVersion()
	if err != nil || !regexp.MustCompile(`^v[1-9][^+$]*$`).MatchString(version.GitVersion) {
		t.Errorf("the server calls itself %v, which is no release: %v", version, err)
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	var ns string
	t.Run("garbage collector", func(t *testing.T) {
		ns = testkit.Namespace(t)
		owner := testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
		testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: child, ownerReferences: "+
			"[{apiVersion: v1, kind: ConfigMap, name: owner, uid: %s}]}}", owner.GetUID()))
		testkit.Delete(t, configMaps, ns, "owner")
		testkit.Eventually(t, testkit.Patience, func() (bool, string) {
			return testkit.Find(t, configMaps, ns, "child") == nil, "the child of a deleted owner is there"
		})
	})
	testkit.Eventually(t, testkit.Patience, func() (bool, string) {
		return testkit.Find(t, namespaces, "", ns) == nil, "the namespace of a test that ended is there"
	})
}

// TestRights: rights of roles are in force immediately after RightsInForce, every time, and a User has those in the
// rules.
func TestRights(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	for range 50 {
		name := testkit.Unique(t)
		testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %s}, "+
			"rules: [{apiGroups: [''], resources: [configmaps], verbs: [list]}]}", name))
		testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s}, "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}, subjects: [{kind: User, name: %[1]s}]}", name))
		must.Do(t, testkit.RightsInForce(t.Context()))
		config := testkit.Config(t)
		config.Impersonate.UserName = name
		if _, err := newClient(t, config).Resource(configMaps).Namespace(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	testkit.Apply(t, ns, configMap)
	config := testkit.User(t, "reader", rbacv1.PolicyRule{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
	})
	// through the kubeconfig file, as a command connects
	config = must.Get(clientcmd.BuildConfigFromFlags("", testkit.KubeconfigFor(t, config))).In(t)
	client := newClient(t, config).Resource(configMaps).Namespace(ns)
	if _, err := client.Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("reading is allowed, but: %v", err)
	}
	if err := client.Delete(t.Context(), "settings", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting is not allowed, but: %v", err)
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	config := testkit.Config(t)
	config.UserAgent = testkit.Unique(t) + "/1"
	use(t, newClient(t, config), ns)
	testkit.Eventually(t, testkit.Patience, func() (bool, string) { // the watch is logged after it has begun
		got := map[string]int{}
		for _, request := range testkit.Audit(t, testkit.Agent(config.UserAgent)) {
			got[request.Key()]++
		}
		return maps.Equal(got, used), "the audit log does not hold exactly what was sent"
	})
	dry := testkit.Audit(t, testkit.Agent(config.UserAgent), func(r testkit.Request) bool { return r.DryRun })
	if len(dry) != 1 || dry[0].Mutating() || dry[0].Code != http.StatusOK || dry[0].Namespace != ns {
		t.Errorf("the dry run is logged as %+v", dry)
	}
}
