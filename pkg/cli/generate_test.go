package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
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
