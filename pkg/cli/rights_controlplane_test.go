//go:build controlplane

package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

func right(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// TestRightsOfCommands: each command needs no more rights than these; without one, it fails, says why and changes
// nothing.
func TestRightsOfCommands(t *testing.T) {
	t.Parallel()
	ns, c, d := testkit.Namespace(t), newCronTabs(t), describe(t)
	c.apply(t, "a", "example.com:80")
	definition := right("apiextensions.k8s.io", "customresourcedefinitions", "get")
	definition.ResourceNames = []string{"crontabs." + c.group}
	guard := "widgets:.guard={maxChanged: 20%, confirm: {namespace: " + ns + ", configMap: confirmations, key: widgets}}"
	taking := "taking Lease " + ns + "/operator: "
	for _, row := range []struct {
		reason string
		rules  []rbacv1.PolicyRule
		args   []string
		code   int
		left   int // finalizers of the Widget
		says   []string
	}{
		{"discovery is enough", nil, []string{"check", "--live", "-c", operatorFile}, 0, 2,
			[]string{"Widget (tools.example.com/v1): namespaced"}},
		{"plan watches", []rbacv1.PolicyRule{right(widgets.Group, "widgets", "list")}, []string{"plan", "-c", operatorFile, "-n", ns}, 1, 2,
			[]string{"is forbidden: grant get, list and watch"}},
		{"an operator has no rights to definitions", nil, []string{"run", "-c", d.file, "--install-crds", "--metrics-bind-address", "0",
			"--health-probe-bind-address", "0"}, 1, 2, []string{"installing CustomResourceDefinition " + d.name(), "forbidden"}},
		{"prove lists", []rbacv1.PolicyRule{right(c.group, "crontabs", "list"), definition},
			[]string{"convert", "prove", "-c", c.file("conversion.yaml"), "--live"}, 0, 2, []string{"1 object in v1beta1: nothing is lost"}},
		{"confirm writes a ConfigMap", []rbacv1.PolicyRule{right("", "configmaps", "create", "patch")},
			[]string{"confirm", "widgets", "--digest", strings.Repeat("0", 32), "-c", operatorFile, "--set", guard}, 0, 2,
			[]string{"is confirmed under key widgets of ConfigMap " + ns + "/confirmations"}},
		{"the Lease may not be read", releasing("create", "update"), releaseIn(ns), 1, 2, []string{taking, "cannot get"}},
		{"the Lease may not be created", releasing("get", "update"), releaseIn(ns), 1, 2, []string{taking, "cannot create"}},
		{"neither Lease, Deployment nor kind exists", releasing("get", "create", "update", "delete"), releaseIn(ns, "--scale-down", "operator",
			"-c", "testdata/errors/gadgets.yaml", "--set", "gadgets:.conventions.finalizer=tools.example.com/gadgets"), 0, 1,
			[]string{"has no kind Gadget", "Deployment " + ns + "/operator does not exist", "1 upstream released"}},
		{"release takes the Lease", releasing("get", "create", "update"), releaseIn(ns), 0, 1, []string{"1 upstream released"}},
		{"without an election", []rbacv1.PolicyRule{right(widgets.Group, "widgets", "list", "patch")},
			[]string{"release", "-c", "testdata/errors/broken.yaml", "-n", ns}, 0, 1, []string{"1 upstream released"}},
	} {
		testkit.Apply(t, ns, fmt.Sprintf(finalizedWidget, "one"))
		p := startWriting(t, testkit.User(t, "one", row.rules...), row.args...)
		code, out := p.wait(t), p.text(t)
		for _, text := range row.says {
			if code != row.code || !strings.Contains(out, text) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s", row.reason, code, row.code, text, out)
			}
		}
		if n := finalizersOf(t, ns, "one"); n != row.left {
			t.Errorf("%s: it has %d finalizers, want %d", row.reason, n, row.left)
		}
		if slices.Contains(row.args, "--scale-down") && testkit.Find(t, leases, ns, "operator") != nil {
			t.Errorf("%s: the Lease is left", row.reason)
		}
	}
	if testkit.Find(t, kinds.DefinitionResource, "", d.name()) != nil {
		t.Error("a definition was installed")
	}
}

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

// TestReleaseScalesDown: release scales the Deployment to 0, waits until the leader has released the Lease, and only
// then removes finalizers. The Lease is deleted, too.
func TestReleaseScalesDown(t *testing.T) {
	t.Parallel()
	ns, leader := led(t)
	testkit.Apply(t, ns, theDeployment)
	r := startWriting(t, testkit.User(t, "uninstaller", releasing("get", "create", "update", "delete")...),
		releaseIn(ns, "--scale-down", "operator")...)
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
