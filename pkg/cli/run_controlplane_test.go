//go:build controlplane

package cli_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRunNeedsNoMoreRights: what the config and the flags imply is enough, and nothing else is tried.
func TestRunNeedsNoMoreRights(t *testing.T) {
	t.Parallel()
	rules := []rbacv1.PolicyRule{
		right(widgets.Group, "widgets", "get", "list", "watch", "patch"), right(widgets.Group, "widgets/status", "patch"),
		right("", "configmaps", "get", "list", "watch", "create", "patch", "delete"),
	}
	electing := []rbacv1.PolicyRule{right(leases.Group, "leases", "get", "create", "update"),
		right("events.k8s.io", "events", "create", "patch")}
	for _, row := range []struct {
		reason string
		rules  []rbacv1.PolicyRule
		args   []string
	}{
		{"alone, without Events", rules, []string{"--set", "widgets:.events=None"}},
		{"in an election", slices.Concat(rules, electing), []string{"--leader-elect", "--leader-election-id", "widgets"}},
	} {
		ns := testkit.Namespace(t)
		p := startRun(t, testkit.User(t, "operator", row.rules...), ns, append(row.args, "-n", ns)...)
		testkit.Apply(t, ns, blueWidget)
		eventuallyColor(t, ns, "blue")
		p.stop(t)
		if !strings.Contains(p.text(t), `"msg":"stopped"`) {
			t.Errorf("%s: it did not say that it stopped", row.reason)
		}
		if text := p.text(t); strings.Contains(strings.ToLower(text), "forbidden") {
			t.Errorf("%s: something was forbidden:\n%s", row.reason, text)
		}
	}
}
