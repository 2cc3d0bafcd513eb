package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/gobuild"
	"github.com/corollary-dev/corollary/internal/must"
)

// TestEachToolIsPinned: the table and the modules have the same versions, so that both must be changed together.
func TestEachToolIsPinned(t *testing.T) {
	modules := must.Get(filepath.Glob("../../tools/*/go.mod")).In(t)
	var folders []string
	for _, file := range modules {
		folders = append(folders, filepath.Base(filepath.Dir(file)))
	}
	if !slices.Equal(folders, Names()) {
		t.Errorf("the folders in tools are %v, the table has %v", folders, Names())
	}
	for _, tool := range all {
		if tool.Package != "." && !slices.Contains(goMod(t, tool), "tool "+tool.Package) {
			t.Errorf("tools/%s/go.mod has no line \"tool %s\"", tool.Binary, tool.Package)
		}
		pinned(t, tool)
	}
}

// goMod returns the lines of the module that pins the tool.
func goMod(t *testing.T, tool gobuild.Module) []string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("../../tools", tool.Binary, "go.mod"))).In(t)
	return strings.Split(string(data), "\n")
}

// pinned returns the version in the tool's module, as 1.2.3.
func pinned(t *testing.T, tool gobuild.Module) string {
	t.Helper()
	for _, line := range goMod(t, tool) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == tool.Versioned {
			return strings.TrimPrefix(fields[1], "v")
		}
	}
	t.Fatalf("tools/%s/go.mod has no version of %s", tool.Binary, tool.Versioned)
	return ""
}

func TestUnknownTool(t *testing.T) {
	if _, err := Build(t.Context(), "helmet", &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "actionlint, certmanager, helm") {
		t.Errorf("it returns %v", err)
	}
}
