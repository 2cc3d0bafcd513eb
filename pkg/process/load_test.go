package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corollary-dev/corollary/pkg/config/load"
)

const cachedConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: cached}
watch: {apiVersion: v1, kind: Namespace}
downstreams: [{name: config, apiVersion: v1, kind: ConfigMap, templateFile: config.tmpl}]
`

// TestLoader: configs are loaded again if one of their files has changed, and only then.
func TestLoader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loads := 0
	loader := &Loader{Named: []string{dir}, Read: func() (l Loaded) {
		loads++
		l.Files, l.Problems = load.Operators(load.Options{Files: []string{dir}})
		return l
	}}
	for _, step := range []struct {
		reason string
		do     func()
		loads  int
	}{
		{"the first time", func() { write("a.yaml", cachedConfig) }, 1},
		{"which files it names was not known before", func() {}, 1},
		{"nothing has changed", func() {}, 0},
		{"the template, which was missing, is there", func() { write("config.tmpl", "metadata: {name: a}\n") }, 1},
		{"nothing has changed", func() {}, 0},
		{"the template has changed", func() { write("config.tmpl", "metadata: {name: b}\n") }, 1},
		{"another config", func() { write("b.yaml", "apiVersion: other\n") }, 1},
		{"nothing has changed, with an error", func() {}, 0},
	} {
		step.do()
		before := loads
		loaded := loader.Load()
		files, errs := loaded.Files, loaded.Problems
		if loads-before != step.loads {
			t.Errorf("%s: %d loads, want %d", step.reason, loads-before, step.loads)
		}
		wanted, wantedErrs := load.Operators(load.Options{Files: loader.Named})
		if len(files) != len(wanted) || errs.Error() != wantedErrs.Error() || len(files) > 0 && files[0].Digest() != wanted[0].Digest() {
			t.Errorf("%s: got %v, %v; want %v, %v", step.reason, files, errs, wanted, wantedErrs)
		}
	}
}
