package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// TestErrors loads the files of each testdata/*.txtar and compares every error, to the byte, with the section
// "want". The comment above the first file says why the case is there; lines in it that begin so are given to
// Load:
//
//	load: app.yaml other/       what to load instead of "."
//	set: app:.mode=Observe      an override from the command line
//	env: COROLLARY_SET_A=…      a variable of the environment
//	stdin: app.yaml             the file that is given as standard input
//	identity: cluster-a         the identity of this cluster; also has the activations loaded
//
// -update writes what Load says into the section.
func TestErrors(t *testing.T) {
	for _, pattern := range caseFiles {
		golden.Cases(t, pattern, func(t *testing.T, c *golden.Case) { c.Want(t, "want", loadArchive(t, c.Archive)) })
	}
}

// caseFiles are the cases, of this package and those that others read, too.
var caseFiles = []string{"testdata/*.txtar", "../../../testdata/complete/*.txtar"}

// loadArchive writes the archive's files into a directory of their own and returns the errors of loading them.
func loadArchive(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, f := range a.Files {
		if f.Name == "want" {
			continue
		}
		must.Do(t, os.MkdirAll(filepath.Dir(f.Name), 0o755))
		must.Do(t, os.WriteFile(f.Name, f.Data, 0o644))
	}
	o := Options{Files: []string{"."}, Env: []string{"HOME=/root"}}
	activations := false
	for line := range strings.Lines(string(a.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "load":
			o.Files = strings.Fields(value)
		case "set":
			o.Set = append(o.Set, value)
		case "env":
			o.Env = append(o.Env, value)
		case "identity":
			activations, o.Identity = true, value
		case "stdin":
			f := must.Get(os.Open(value)).In(t)
			t.Cleanup(func() { _ = f.Close() })
			o.Stdin = f
		}
	}
	files, errs := Operators(o)
	if activations {
		_, more := Activations(o, files)
		errs = append(errs, more...).Sort()
	}
	for _, f := range files {
		if len(errs) == 0 && !f.Valid() {
			t.Errorf("%s is not valid, yet nothing is wrong", f.Path)
		}
	}
	if len(errs) == 0 {
		return ""
	}
	return errs.Error() + "\n"
}
