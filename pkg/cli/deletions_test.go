package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRunOnlyDeletes: with no config but a broken one, upstreams that are being deleted are cleaned up after, readiness
// says that nothing else is done, and the fixed file is put to work.
func TestRunOnlyDeletes(t *testing.T) {
	t.Parallel()
	ns, health := memory(t), testkit.FreeAddress(t)
	m := &mount{t: t, dir: t.TempDir(), files: map[string]string{"config.tmpl": mountedTemplate, "conventions.yaml": mountedShared}}
	good := strings.ReplaceAll(mountedConfig, "NS", ns)
	m.set("operator.yaml", good)
	p := start(t, testkit.Config(t), "run", "-c", m.dir, "-n", ns, "--health-probe-bind-address", "0")
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	p.stop(t)
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": ["tools.example.com/mounted"]}}`)

	m.set("config.tmpl", "metadata: {name: {{ .metadata.name }\n")
	p = start(t, testkit.Config(t), "run", "-c", m.dir, "--reload-interval", "1s", "-n", ns, "--health-probe-bind-address", health)
	eventuallyAnswers(t, health+"/readyz/operators", http.StatusInternalServerError, "config.tmpl",
		"only upstreams that are being deleted are handled")
	testkit.Delete(t, widgets, ns, "one")
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Find(t, widgets, ns, "one") == nil, "the upstream is held"
	})
	m.set("config.tmpl", mountedTemplate)
	eventuallyAnswers(t, health+"/readyz/operators", http.StatusOK)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	p.stop(t)
}
