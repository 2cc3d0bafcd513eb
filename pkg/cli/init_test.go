package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestInitTakesWhatExamplesRender: the objects of every example become downstreams again, and what is written is good.
func TestInitTakesWhatExamplesRender(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/configs/*/rendered.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d examples: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"init", "--kind", "Made.v1.platform.example.com", "--from", file, "--dir", dir}
			if crds := filepath.Join(filepath.Dir(file), "crd.yaml"); exists(crds) {
				args = append(args, "--crds", crds)
			}
			code, out := run(t, args...)
			if strings.Contains(out, "make the kind cluster-scoped") { // copies in several namespaces
				code, out = run(t, append(args, "--scope", "Cluster")...)
			}
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			config, crd := filepath.Join(dir, "operator.yaml"), filepath.Join(dir, "crd.yaml")
			expect(t, 0, "no errors", "check", "-c", config, "--crds", crd)
			expect(t, 0, "", "render", "-c", config, "--crds", crd, "-f", filepath.Join(dir, "cr.yaml"))
		})
	}
}
