package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// textOf returns the content of a file in the repository.
func textOf(t *testing.T, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(root, name))).In(t)
	return string(data)
}

// TestSupportedVersionsOfKubernetes: the supported versions are the tested ones, in all files that list them.
func TestSupportedVersionsOfKubernetes(t *testing.T) {
	pinned := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v((\d+\.\d+)\.\d+)$`)
	oldest := pinned.FindStringSubmatch(textOf(t, "hack/controlplane/oldest.mod"))
	newest := pinned.FindStringSubmatch(textOf(t, "hack/controlplane/go.mod"))
	if oldest == nil || newest == nil {
		t.Fatal("a go.mod of the control plane pins no version of Kubernetes")
	}
	for file, wants := range map[string][]string{
		"charts/corollary/Chart.yaml": {`kubeVersion: ">=` + oldest[2] + `.0-0"`},
		"charts/corollary/README.md":  {"Kubernetes " + oldest[2] + " or later", newest[2]},
		"pkg/generate/olm.go":         {`"minKubeVersion": "` + oldest[2] + `.0"`},
		"docs/versions.md":            {"| " + oldest[2] + " | oldest", oldest[1], "| " + newest[2] + " | newest", newest[1]},
	} {
		for _, want := range wants {
			if !strings.Contains(textOf(t, file), want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}

// TestWorkflowsCallTargets: the workflows and .ci only use targets of make.
func TestWorkflowsCallTargets(t *testing.T) {
	workflows, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(workflows) == 0 {
		t.Fatalf("there are no workflows: %v", err)
	}
	targets := textOf(t, "Makefile")
	called := regexp.MustCompile(`(?m)^[^#\n]*\bmake ([a-z-]+)`)
	for _, name := range append(workflows, filepath.Join(root, ".ci/run")) {
		relative := must.Get(filepath.Rel(root, name)).In(t)
		for _, match := range called.FindAllStringSubmatch(textOf(t, relative), -1) {
			if !regexp.MustCompile(`(?m)^` + match[1] + `:`).MatchString(targets) {
				t.Errorf("%s calls make %s, which the Makefile does not have", relative, match[1])
			}
		}
	}
}
