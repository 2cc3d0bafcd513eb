//go:build controlplane

package cli_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// theDeployment would have two processes, if there were nodes.
const theDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}, spec: {replicas: 2, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`

// uninstaller has the rights of release for widgets, and for those things of leader election.
func uninstaller(t *testing.T, verbs ...string) *rest.Config {
	t.Helper()
	return testkit.User(t, "uninstaller",
		rbacv1.PolicyRule{APIGroups: []string{widgets.Group}, Resources: []string{"widgets"}, Verbs: []string{"list", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{leases.Group}, Resources: []string{"leases"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"patch"},
			ResourceNames: []string{"operator"}})
}

// TestReleaseScalesDown: release scales the Deployment to 0, waits until the leader has released the Lease, and only then removes
// finalizers. The Lease is deleted, too.
func TestReleaseScalesDown(t *testing.T) {
	ns, leader := led(t)
	testkit.Apply(t, ns, theDeployment)
	r := startWriting(t, uninstaller(t, "get", "create", "update", "delete"), releaseIn(ns, "--scale-down", "operator")...)
	eventuallySays(t, r, "waiting until ")
	if n, _, _ := unstructured.NestedInt64(testkit.Get(t, deployments, ns, "operator").Object, "spec", "replicas"); n != 0 {
		t.Errorf("it waits, and there are %d replicas", n)
	}
	testkit.Patch(t, widgets, ns, "one", "test", `{"spec": {"color": "red"}}`) // the leader is at work still
	eventuallyColor(t, ns, "red")
	if n := finalizersOf(t, ns, "one"); n != 1 {
		t.Error("a finalizer went while an operator leads")
	}
	leader.interrupt(t) // as a Deployment that is scaled to 0 has it
	if code := r.wait(t); code != 0 || !strings.Contains(r.text(t), "1 upstream released") {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	if n := finalizersOf(t, ns, "one"); n != 0 {
		t.Errorf("it has %d finalizers", n)
	}
	if testkit.Find(t, leases, ns, "operator") != nil {
		t.Error("the Lease is left")
	}
}

// TestReleaseHoldsTheLease: without --scale-down a process that comes meanwhile waits as a standby until release has let go.
func TestReleaseHoldsTheLease(t *testing.T) {
	ns, leader := led(t)
	r := startWriting(t, uninstaller(t, "get", "create", "update"), releaseIn(ns)...)
	eventuallySays(t, r, "waiting until ")
	leader.interrupt(t)
	if code := r.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	lease := testkit.Get(t, leases, ns, "operator")
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if n, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseTransitions"); holder != "" || n < 1 {
		t.Errorf("it was not taken and let go of: %v", lease.Object["spec"])
	}
}

// TestReleaseBeforeAnybodyLed: there is neither Lease nor Deployment, nor one of the kinds; and the Lease is made.
func TestReleaseBeforeAnybodyLed(t *testing.T) {
	ns := testkit.Namespace(t)
	testkit.Apply(t, ns, strings.Replace(blueWidget, "name: one", "name: one, finalizers: [tools.example.com/cleanup]", 1))
	r := startWriting(t, uninstaller(t, "get", "create", "update", "delete"), releaseIn(ns, "--scale-down", "operator", "-c",
		"testdata/errors/gadgets.yaml", "--set", "gadgets:.conventions.finalizer=tools.example.com/gadgets")...)
	if code := r.wait(t); code != 0 || !strings.Contains(r.text(t), "has no kind Gadget") ||
		!strings.Contains(r.text(t), "Deployment "+ns+"/operator does not exist") || finalizersOf(t, ns, "one") > 0 {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	if testkit.Find(t, leases, ns, "operator") != nil {
		t.Error("the Lease is left")
	}
}

// TestReleaseMayNotTakeTheLease: what is refused is reported and not waited for; nothing was taken off.
func TestReleaseMayNotTakeTheLease(t *testing.T) {
	ns := testkit.Namespace(t)
	testkit.Apply(t, ns, strings.Replace(blueWidget, "name: one", "name: one, finalizers: [tools.example.com/cleanup]", 1))
	for _, verbs := range [][]string{{"create", "update"}, {"get", "update"}} {
		r := startWriting(t, uninstaller(t, verbs...), releaseIn(ns)...)
		if code := r.wait(t); code != 1 || !strings.Contains(r.text(t), "taking Lease "+ns+"/operator: ") ||
			!strings.Contains(r.text(t), "cannot ") {
			t.Errorf("%v: exit code %d\n%s", verbs, code, r.text(t))
		}
	}
	if f := testkit.Get(t, widgets, ns, "one").GetFinalizers(); !slices.Contains(f, "tools.example.com/cleanup") {
		t.Error("the finalizer went all the same")
	}
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": null}}`)
}
