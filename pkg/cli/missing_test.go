package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// drop takes a file out of the mount.
func (m *mount) drop(name string) {
	m.t.Helper()
	delete(m.files, name)
	ok(m.t, os.Remove(filepath.Join(m.dir, name)))
	m.set("operator.yaml", m.files["operator.yaml"])
}

// TestRunWithoutTheBadOnes: at a start, a config with an error and two that conflict do not run, and the others do.
// Readiness says which are missing, until they are fixed or gone.
func TestRunWithoutTheBadOnes(t *testing.T) {
	t.Parallel()
	ns, health := memory(t), testkit.FreeAddress(t)
	m := &mount{t: t, dir: t.TempDir(), files: map[string]string{"config.tmpl": mountedTemplate, "conventions.yaml": mountedShared}}
	good := strings.ReplaceAll(mountedConfig, "NS", ns)
	m.set("operator.yaml", good)
	twin := func(name, kind string) string {
		return `{apiVersion: corollary.dev/v1alpha1, kind: Operator, metadata: {name: ` + name + `}, watch: {apiVersion: tools.example.com/v1, kind: ` + kind + `, namespaces: [` + ns + `]},
  downstreams: [{name: config, apiVersion: v1, kind: ConfigMap, template: "metadata: {name: ` + name + `}"}], status: {enabled: false},
  conventions: {fieldManager: twins, labels: {tools.example.com/of: ` + name + `}, hash: {annotation: tools.example.com/hash}, owner: {reference: true}}}`
	}
	m.set("first.yaml", twin("first", "Gadget"))
	m.set("second.yaml", twin("second", "Gizmo"))
	m.set("broken.yaml", strings.Replace(strings.Replace(twin("broken", "Gizmo"), "twins", "broken", 1), "kind: ConfigMap, ", "", 1))
	p := start(t, testkit.Config(t), "run", "-c", m.dir, "--reload-interval", "1h", "-n", ns, "--health-probe-bind-address", health)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	says := func(ok bool, want ...string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			code, text := answer(t, "http://"+health+"/readyz/operators")
			fits := (code == http.StatusOK) == ok
			for _, w := range want {
				fits = fits && strings.Contains(text, w)
			}
			return fits && !strings.Contains(text, "operator first") && !strings.Contains(text, "operator second"), text
		})
	}
	says(false, "broken.yaml", "second.yaml", `field manager "twins"`)
	m.drop("broken.yaml")
	says(false, "second.yaml")
	m.drop("second.yaml")
	says(true)
	p.stop(t)

	m.set("operator.yaml", strings.Replace(good, "kind: Operator", "kind: Operatr", 1))
	m.drop("first.yaml") // its kind is missing, so it would wait for it
	if code, out := run(t, "run", "-c", m.dir); code == 0 || !strings.Contains(out, "operator.yaml") {
		t.Errorf("with bad configs alone it ends with exit code %d:\n%s", code, out)
	}
}
