package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
)

// TestExamplePolicies holds the policies that stand beside examples to what is printed.
func TestExamplePolicies(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../examples/configs/*/policy.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d policies: %v", len(paths), err)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			out, errs, code := split(t, "generate", "policy", "-c", filepath.Join(dir, "operator.yaml"), "--crds", filepath.Join(dir, "crd.yaml"),
				"--service-account", "platform/corollary")
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d\n%s", code, errs)
			}
			golden.File(t, path, []byte(out))
		})
	}
}
