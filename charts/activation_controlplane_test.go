//go:build controlplane

package charts

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestInstallActivation installs the chart in two clusters, which are namespaces here, with one lock in a third. The
// pods reach the lock by the kubeconfig in the Secret, by the rights that the page about activations names, and the
// rest by the rights of the chart. One release is active and the other a ready standby, which takes over when the first
// one is taken away.
func TestInstallActivation(t *testing.T) {
	t.Parallel()
	locks := testkit.Namespace(t)
	account := testkit.User(t, "lock",
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"sites"},
			Verbs: []string{"get", "watch", "update"}})
	kubeconfig := must.Get(controlplane.Kubeconfig(account)).In(t)
	binary := build(t)
	install := func(identity string) *installation {
		i := prepare(t, binary)
		testkit.Apply(i, i.system, "{apiVersion: v1, kind: Secret, metadata: {name: lock}, stringData: {kubeconfig: "+fmt.Sprintf("%q",
			kubeconfig)+"}}")
		testkit.Apply(i, i.apps, strings.Replace(i.site(), "name: page", "name: page-of-"+identity, 1))
		values := i.values("activation.yaml", "LOCKS", locks, "IDENTITY", identity)
		i.helm("install", i.name, chart, "--values="+values, "--wait", "--timeout=10m") // which waits until its pods are ready
		i.note()
		return i
	}
	token := func(i *installation, page, want string) {
		t.Helper()
		must.Same(t, want, testkit.Get(i, configMaps, i.apps, page).GetAnnotations()["install.example.com/token"], page, "has the token")
	}
	eu := install("eu")
	eu.ready(sites, eu.apps, "site")
	token(eu, "page-of-eu", "0")
	us := install("us")
	us.eventually(func() (bool, string) {
		return us.kubelet.running(`"operator":"site","reason":"Standby"`) != nil, "no pod is a standby"
	})
	us.eventually(func() (bool, string) {
		return us.kubelet.running(`"msg":"another cluster is active"`) != nil, "no pod waits for the other cluster"
	})
	if testkit.Find(us, configMaps, us.apps, "page-of-us") != nil {
		t.Error("the standby writes")
	}
	eu.helm("uninstall", eu.name, "--timeout=10m")
	us.ready(sites, us.apps, "site")
	token(us, "page-of-us", "1")
	if f := testkit.Get(eu, sites, eu.apps, "site").GetFinalizers(); len(f) > 0 {
		t.Errorf("after the uninstallation there are the finalizers %v", f)
	}
	token(eu, "page-of-eu", "0") // which stays
	us.helm("uninstall", us.name, "--timeout=10m")
}
