package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestCasesDecideNothing prevents a second engine in pkg/cases: for a case, pkg/reconcile decides, renders, writes and
// reports, and pkg/memcluster is the only API server.
func TestCasesDecideNothing(t *testing.T) {
	second := regexp.MustCompile(`\.(DecideDeletion|Leftovers|Document|Desired|Report|ReportDeletion|ReportUnselected)\(|drift\.(Extras|Explain|Project)\(` +
		`|util/managedfields|structured-merge-diff`)
	files, err := filepath.Glob("../../pkg/cases/*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	reconciles := false
	for _, path := range files {
		text := must.Get(os.ReadFile(path)).In(t)
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		reconciles = reconciles || strings.Contains(string(text), "reconciler.Reconcile(")
		if found := second.Find(text); found != nil {
			t.Errorf("%s: %s: leave it to pkg/reconcile", path, found)
		}
	}
	if !reconciles {
		t.Error("pkg/cases does not call the reconciler")
	}
}

// sharedText finds what belongs to the tests of a package that is not next to the one that reads it.
var sharedText = regexp.MustCompile(`"(\.\./)+[^.".][^"]*/[^"]*testdata/`)

// TestSharedFilesAreShared: what tests of several packages read is in testdata of the project.
func TestSharedFilesAreShared(t *testing.T) {
	for _, s := range sources(t) {
		text := must.Get(os.ReadFile(filepath.Join("../..", s.path))).In(t)
		// Whatever loads must fit the schema: that needs every case of the loader.
		isOfLoader := s.path == "pkg/config/schema/schema_test.go"
		if found := sharedText.Find(text); found != nil && !isOfLoader && s.path != "internal/house/cases_test.go" {
			t.Errorf("%s reads %s of another package: move it to testdata of the project", s.path, found)
		}
	}
}
