package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// complete makes a directory that a backup has been written to.
func complete(t *testing.T, parent, content string) (string, *Manifest) {
	t.Helper()
	dir, err := os.MkdirTemp(parent, ".backup.")
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{Format: format, Operators: []Operator{{Name: content}}}
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	return dir, m
}

// A backup that was killed while it replaced another one does not keep later ones from being written.
func TestReplaceAfterAKill(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"backup", "backup.tar.zst"} {
		parent := t.TempDir()
		to := filepath.Join(parent, name)
		left, _ := complete(t, parent, "left by a kill")
		for _, suffix := range []string{".old", ".tar.zst"} {
			if err := os.Rename(left, to+suffix); err != nil {
				t.Fatal(err)
			}
			left, _ = complete(t, parent, "left by a kill")
		}
		for _, content := range []string{"first", "second", "third"} {
			from, m := complete(t, parent, content)
			if written, err := replace(from, to, m); err != nil || !written {
				t.Fatalf("%s: %s: written is %t: %v", name, content, written, err)
			}
			a, err := Open(to, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Manifest.Operators[0].Name; got != content {
				t.Errorf("%s: it holds %s", name, got)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A file is only written over if a backup wrote it.
func TestCheckOutputFile(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	from, m := complete(t, parent, "a")
	whole := filepath.Join(parent, "whole.tar.zst")
	if _, err := replace(from, whole, m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		reason, text, problem string
	}{
		{"a backup", string(text), ""},
		{"a small backup whose end is missing: somebody should look at it", string(text[:len(text)-4]), "exists and is not a backup"},
		{"an empty file, as mktemp makes it", "", ""},
		{"a text", "my notes, which are long enough to be something", "exists and is not a backup: name another file"},
		{"something else that zstd has compressed", "\x28\xb5\x2f\xfd\x04\x00\x19\x00\x00abc", "exists and is not a backup"},
	} {
		path := filepath.Join(t.TempDir(), "out.tar.zst")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkOutput(path)
		if (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}
