package load_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "config.tmpl")
	write := func(path, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	file := filepath.Join(dir, "a.yaml")
	write(file, "a: 1\n")
	last := ""
	for _, step := range []struct {
		reason  string
		do      func()
		changes bool
	}{
		{"the first", func() {}, true},
		{"nothing has changed", func() {}, false},
		{"the same text was written again", func() { write(file, "a: 1\n") }, false},
		{"another text of the same length", func() { write(file, "a: 2\n") }, true},
		{"a file that is not a config", func() { write(filepath.Join(dir, "notes.txt"), "text") }, false},
		{"a config more", func() { write(filepath.Join(dir, "b.yaml"), "") }, true},
		{"a file that a config names is there now", func() { write(other, "text") }, true},
		{"it has changed", func() { write(other, "Text") }, true},
		{"a config less", func() {
			must.Do(t, os.Remove(file))
		}, true},
	} {
		step.do()
		sum, covered := load.Fingerprint([]string{dir}, []string{other})
		if (sum != last) != step.changes {
			t.Errorf("%s: changed %v, want %v", step.reason, sum != last, step.changes)
		}
		if last = sum; !covered[other] || covered[filepath.Join(dir, "notes.txt")] {
			t.Errorf("%s: covered are %v", step.reason, covered)
		}
	}
}
