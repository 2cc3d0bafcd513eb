//go:build controlplane

package tools

import (
	"os/exec"
	"strings"
	"testing"
)

// TestVersions runs each tool and checks that it prints the pinned version.
func TestVersions(t *testing.T) {
	arguments := map[string][]string{
		"actionlint":  {"-version"},
		"certmanager": {"version"},
		"helm":        {"version", "--short"},
		"hugo":        {"version"},
		"kubectl":     {"version", "--client"},
		"promtool":    {"--version"},
	}
	for _, tool := range all {
		out, err := exec.CommandContext(t.Context(), Path(t, tool.Binary), arguments[tool.Binary]...).CombinedOutput()
		if version := pinned(t, tool); err != nil || !strings.Contains(string(out), version) {
			t.Errorf("%s: %v: it does not say %q:\n%s", tool.Binary, err, version, out)
		}
	}
}
