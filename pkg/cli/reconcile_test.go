package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// withReconcile is the test operator with an annotation to ask by.
func withReconcile(t *testing.T) string {
	t.Helper()
	data := read(t, operatorFile)
	path := t.TempDir() + "/operator.yaml"
	text := strings.Replace(data, "  owner: {", "  reconcile: {annotation: tools.example.com/look}\n  owner: {", 1)
	write(t, path, text)
	return path
}

// TestReconcileRequests a reconcile by any name of a kind, with another value each time.
func TestReconcileRequests(t *testing.T) {
	t.Parallel()
	ns, config := memory(t), withReconcile(t)
	testkit.Apply(t, ns, blueWidget)
	last := ""
	for _, args := range [][]string{{"widget", "one"}, {"widgets/one"}, {"Widget", "one"}, {"widgets.tools.example.com", "one"},
		{"widget.v1.tools.example.com/one"}} {
		code, out := run(t, append([]string{"reconcile", "-c", config, "-n", ns}, args...)...)
		value := testkit.Get(t, widgets, ns, "one").GetAnnotations()["tools.example.com/look"]
		if _, err := time.Parse(time.RFC3339Nano, value); code != 0 || err != nil || value == last || !strings.Contains(out, value) {
			t.Errorf("%v: exit code %d, the annotation is %q, %v\n%s", args, code, value, err, out)
		}
		last = value
	}
}

// TestReconcileRefuses what cannot be asked for, and says what can.
func TestReconcileRefuses(t *testing.T) {
	t.Parallel()
	ns, config := memory(t), withReconcile(t)
	for _, c := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"the config has no key", []string{"-c", operatorFile, "widget", "one"}, "has no conventions.reconcile.annotation"},
		{"a downstream", []string{"-c", config, "cm", "one"}, "ConfigMap is not an upstream of these configs"},
		{"another kind", []string{"-c", config, "pod", "one"}, `no config has a kind "pod"; the kinds are ConfigMap, Widget.tools.example.com`},
		{"no such object", []string{"-c", config, "widget", "none"}, `widgets.tools.example.com "none" not found`},
		{"no name", []string{"-c", config, "widget"}, "KIND and NAME are needed"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if code, out := run(t, append([]string{"reconcile", "-n", ns}, c.args...)...); code != 1 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, %q wanted in\n%s", code, c.want, out)
			}
		})
	}
}
