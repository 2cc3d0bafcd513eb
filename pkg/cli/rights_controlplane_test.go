//go:build controlplane

package cli_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

func right(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// TestRightsOfCommands: each command needs no more rights than these; without one, it fails, says why and changes nothing.
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
		says   []string
	}{
		{"discovery is enough", nil, []string{"check", "--live", "-c", operatorFile}, 0, []string{"Widget (tools.example.com/v1): namespaced"}},
		{"plan watches", []rbacv1.PolicyRule{right(widgets.Group, "widgets", "list")}, []string{"plan", "-c", operatorFile, "-n", ns}, 1,
			[]string{"is forbidden: grant get, list and watch"}},
		{"an operator has no rights to definitions", nil, []string{"run", "-c", d.file, "--install-crds", "--metrics-bind-address", "0",
			"--health-probe-bind-address", "0"}, 1, []string{"installing CustomResourceDefinition " + d.name(), "forbidden"}},
		{"prove lists", []rbacv1.PolicyRule{right(c.group, "crontabs", "list"), definition},
			[]string{"convert", "prove", "-c", c.file("conversion.yaml"), "--live"}, 0, []string{"1 object in v1beta1: nothing is lost"}},
		{"confirm writes a ConfigMap", []rbacv1.PolicyRule{right("", "configmaps", "create", "patch")},
			[]string{"confirm", "widgets", "--digest", strings.Repeat("0", 32), "-c", operatorFile, "--set", guard}, 0,
			[]string{"is confirmed under key widgets of ConfigMap " + ns + "/confirmations"}},
		{"the Lease may not be read", releasing("create", "update"), releaseIn(ns), 1, []string{taking, "cannot get"}},
		{"the Lease may not be created", releasing("get", "update"), releaseIn(ns), 1, []string{taking, "cannot create"}},
		{"release takes the Lease", releasing("get", "create", "update"), releaseIn(ns), 0, []string{"1 upstream released"}},
		{"without an election", []rbacv1.PolicyRule{right(widgets.Group, "widgets", "list", "patch")},
			[]string{"release", "-c", "testdata/errors/broken.yaml", "-n", ns}, 0, []string{"1 upstream released"}},
	} {
		testkit.Apply(t, ns, fmt.Sprintf(finalizedWidget, "one"))
		p := startWriting(t, testkit.User(t, "one", row.rules...), row.args...)
		code, out := p.wait(t), p.text(t)
		for _, text := range row.says {
			if code != row.code || !strings.Contains(out, text) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s", row.reason, code, row.code, text, out)
			}
		}
		if row.code != 0 && finalizersOf(t, ns, "one") != 2 {
			t.Errorf("%s: a finalizer went all the same", row.reason)
		}
	}
	if testkit.Find(t, kinds.DefinitionResource, "", d.name()) != nil {
		t.Error("a definition was installed")
	}
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": null}}`)
}
