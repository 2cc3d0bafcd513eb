//go:build controlplane

package cli_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestRunKeepsTheClusterAndStops(t *testing.T) {
	ns := testkit.Namespace(t)
	p := startRun(t, testkit.Config(t), ns)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	p.interrupt(t)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d after an interrupt, want 0\n%s", code, p.text(t))
	}
	if !strings.Contains(p.text(t), `"msg":"stopped"`) {
		t.Errorf("it did not say that it stopped:\n%s", p.text(t))
	}
}

// TestRunNeedsNoMoreRights: what the config implies is enough, and nothing else is tried.
func TestRunNeedsNoMoreRights(t *testing.T) {
	ns := testkit.Namespace(t)
	cfg := testkit.User(t, "operator",
		rbacv1.PolicyRule{APIGroups: []string{widgets.Group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{widgets.Group}, Resources: []string{"widgets/status"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch",
			"delete"}})
	p := startRun(t, cfg, ns, "--set", "widgets:.events=None")
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	p.interrupt(t)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if text := p.text(t); strings.Contains(strings.ToLower(text), "forbidden") {
		t.Errorf("something was forbidden:\n%s", text)
	}
}

// TestCheckLive: the API server's schemas type what no file describes.
func TestCheckLive(t *testing.T) {
	t.Setenv("KUBECONFIG", testkit.KubeconfigFor(t, testkit.User(t, "nobody")))
	code, out := run(t, "check", "--live", "-c", operatorFile)
	for _, want := range []string{"upstream: Widget (tools.example.com/v1): namespaced, status subresource, typed\n",
		"downstream config: ConfigMap (v1): namespaced, typed\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q wanted in:\n%s", code, want, out)
		}
	}
	if code, out := run(t, "check", "--live", "-c", "testdata/errors/untyped.yaml"); code != 1 ||
		!strings.Contains(out, "did you mean color?") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if code, out := run(t, "check", "--live", "-c", "testdata/errors/gadgets.yaml"); code != 0 ||
		!strings.Contains(out, "the API server has no kind Gadget") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
