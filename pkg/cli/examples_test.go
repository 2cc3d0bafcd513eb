package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples holds what the README of each example promises: check finds no error, and render prints rendered.yaml,
// of the chain the part that follows from cr.yaml itself.
func TestExamples(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("../../examples/configs/*/README.md")
	if err != nil || len(readmes) == 0 {
		t.Fatalf("found %d examples: %v", len(readmes), err)
	}
	for _, readme := range readmes {
		dir := filepath.Dir(readme)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			args := []string{"-c", filepath.Join(dir, "operator.yaml")}
			if operators := filepath.Join(dir, "operators"); exists(operators) {
				args = []string{"-c", operators}
			}
			if crds := filepath.Join(dir, "crd.yaml"); exists(crds) {
				args = append(args, "--crds", crds)
			}
			expect(t, 0, "no errors, 0 warnings", append([]string{"check"}, args...)...)
			if inputs := filepath.Join(dir, "inputs.yaml"); exists(inputs) {
				args = append(args, "--inputs", inputs)
			}
			out, errs, code := split(t, append([]string{"render", "-f", filepath.Join(dir, "cr.yaml")}, args...)...)
			if code != 0 {
				t.Fatalf("render: exit code %d\n%s", code, errs)
			}
			golden := read(t, filepath.Join(dir, "rendered.yaml"))
			if !strings.HasPrefix(golden, out) || out == "" {
				t.Errorf("rendered.yaml does not begin with what render prints:\n%s", out)
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
