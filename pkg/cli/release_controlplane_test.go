//go:build controlplane

package cli_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const finalizedWidget = `{apiVersion: tools.example.com/v1, kind: Widget,
  metadata: {name: %s, finalizers: [tools.example.com/cleanup, tools.example.com/other]}, spec: {color: blue}}`

// TestReleaseRemovesFinalizers: with the rights to list and patch only, with a config whose rules and templates are broken. Other
// finalizers stay.
func TestReleaseRemovesFinalizers(t *testing.T) {
	ns := testkit.Namespace(t)
	for i := range 3 {
		testkit.Apply(t, ns, fmt.Sprintf(finalizedWidget, fmt.Sprintf("w%d", i)))
	}
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: bare}}")
	t.Setenv("KUBECONFIG", testkit.KubeconfigFor(t, testkit.User(t, "releaser",
		rbacv1.PolicyRule{APIGroups: []string{widgets.Group}, Resources: []string{"widgets"}, Verbs: []string{"list", "patch"}})))

	code, out := run(t, "release", "-c", "testdata/errors/broken.yaml", "-n", ns, "--dry-run")
	if code != 0 || !strings.Contains(out, "3 upstreams would be released") {
		t.Errorf("dry run: exit code %d\n%s", code, out)
	}
	if n := finalizersOf(t, ns, "w0"); n != 2 {
		t.Errorf("a dry run left %d finalizers, want 2", n)
	}
	code, out = run(t, "release", "-c", "testdata/errors/broken.yaml", "-n", ns)
	if code != 0 || !strings.Contains(out, "3 upstreams released") ||
		!strings.Contains(out, "widgets.tools.example.com "+ns+"/w1: finalizer tools.example.com/cleanup removed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for i := range 3 {
		if n := finalizersOf(t, ns, fmt.Sprintf("w%d", i)); n != 1 {
			t.Errorf("w%d has %d finalizers, want the other one only", i, n)
		}
	}
	for i := range 3 {
		testkit.Patch(t, widgets, ns, fmt.Sprintf("w%d", i), "test", `{"metadata": {"finalizers": null}}`)
	}
}
