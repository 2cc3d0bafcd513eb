package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
)

// TestGeneratedStatusIsAllThatIsMissing pastes what is printed into a definition, which then lacks nothing.
func TestGeneratedStatusIsAllThatIsMissing(t *testing.T) {
	t.Parallel()
	const config, spec = "../../examples/configs/webapp/operator.yaml", "spec: {type: object, x-kubernetes-preserve-unknown-fields: true}"
	printed, errs, code := split(t, "generate", "crd-status", "-c", config)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	crd := filepath.Join(t.TempDir(), "crd.yaml")
	compare := func(version string) string {
		t.Helper()
		text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webapps.tools.example.com}
spec:
  group: tools.example.com
  names: {kind: WebApp, plural: webapps}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      ` + strings.ReplaceAll(version, "\n", "\n      ") + "\n"
		write(t, crd, text)
		again, note, code := split(t, "generate", "crd-status", "-c", config, "--crds", crd)
		if code != 0 || again != printed {
			t.Errorf("with the definition, exit code %d and\n%s", code, again)
		}
		return note
	}
	if got, want := compare("schema: {openAPIV3Schema: {type: object, properties: {"+spec+"}}}"),
		"note: the definition of WebApp lacks subresources.status, .status.address, .status.availableReplicas, .status.conditions, "+
			".status.downstreams, .status.observedGeneration, .status.url\n"; got != want {
		t.Errorf("before:\n%s\nwant\n%s", got, want)
	}
	pasted := strings.Replace(printed, "    properties:\n", "    type: object\n    properties:\n      "+spec+"\n", 1)
	if got, want := compare(pasted), "note: the definition of WebApp has all of it\n"; got != want {
		t.Errorf("after:\n%s\nwant\n%s", got, want)
	}
}

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
