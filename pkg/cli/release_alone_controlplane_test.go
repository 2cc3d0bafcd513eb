//go:build controlplane

package cli_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// theDeployment would have two processes, if there were nodes.
const theDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}, spec: {replicas: 2, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`

// releasing are the rights of release for widgets, and for those things of leader election.
func releasing(verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{widgets.Group}, Resources: []string{"widgets"}, Verbs: []string{"list", "patch"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}},
		{APIGroups: []string{leases.Group}, Resources: []string{"leases"}, Verbs: verbs},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"patch"}, ResourceNames: []string{"operator"}},
	}
}

// TestReleaseScalesDown: release scales the Deployment to 0, waits until the leader has released the Lease, and only then removes
// finalizers. The Lease is deleted, too.
func TestReleaseScalesDown(t *testing.T) {
	t.Parallel()
	ns, leader := led(t)
	testkit.Apply(t, ns, theDeployment)
	r := startWriting(t, testkit.User(t, "uninstaller", releasing("get", "create", "update", "delete")...), releaseIn(ns, "--scale-down", "operator")...)
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

// TestReleaseBeforeAnybodyLed: there is neither Lease nor Deployment, nor one of the kinds; and the Lease is made.
func TestReleaseBeforeAnybodyLed(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	testkit.Apply(t, ns, strings.Replace(blueWidget, "name: one", "name: one, finalizers: [tools.example.com/cleanup]", 1))
	r := startWriting(t, testkit.User(t, "uninstaller", releasing("get", "create", "update", "delete")...), releaseIn(ns, "--scale-down", "operator", "-c",
		"testdata/errors/gadgets.yaml", "--set", "gadgets:.conventions.finalizer=tools.example.com/gadgets")...)
	if code := r.wait(t); code != 0 || !strings.Contains(r.text(t), "has no kind Gadget") ||
		!strings.Contains(r.text(t), "Deployment "+ns+"/operator does not exist") || finalizersOf(t, ns, "one") > 0 {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	if testkit.Find(t, leases, ns, "operator") != nil {
		t.Error("the Lease is left")
	}
}
