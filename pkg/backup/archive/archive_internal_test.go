package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
)

// complete makes a directory that a backup has been written to.
func complete(t *testing.T, parent, content string) (string, *Manifest) {
	t.Helper()
	dir := must.Get(os.MkdirTemp(parent, ".backup.")).In(t)
	m := &Manifest{Format: Format, Operators: []Operator{{Name: content}}}
	must.Do(t, m.Write(dir))
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
			must.Do(t, os.Rename(left, to+suffix))
			left, _ = complete(t, parent, "left by a kill")
		}
		for _, content := range []string{"first", "second", "third"} {
			from, m := complete(t, parent, content)
			if written, err := Replace(from, to, m); err != nil || !written {
				t.Fatalf("%s: %s: written is %t: %v", name, content, written, err)
			}
			a := must.Get(Open(to, nil)).In(t)
			must.Same(t, content, a.Manifest.Operators[0].Name, name, "it holds")
			must.Do(t, a.Close())
		}
	}
}

// A file is only written over if a backup wrote it.
func TestCheckOutputFile(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	from, m := complete(t, parent, "a")
	whole := filepath.Join(parent, "whole.tar.zst")
	must.Get(Replace(from, whole, m)).In(t)
	text := must.Get(os.ReadFile(whole)).In(t)
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
		must.Do(t, os.WriteFile(path, []byte(row.text), 0o600))
		err := CheckOutput(path)
		if (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// A name that looks like an archive of another kind is a slip: it would become a directory.
func TestCheckOutputExtension(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.tgz": "write NAME.tar.zst", "a.tar": "write NAME.tar.zst", "a.tar.gz": "write NAME.tar.zst", "a.zip": "write NAME.tar.zst",
		"a": "", "a.tar.zst": "", "2026.11": "",
	} {
		err := CheckOutput(filepath.Join(t.TempDir(), name))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a killed backup left is removed a day later, and nothing else is.
func TestRemoveAbandoned(t *testing.T) {
	t.Parallel()
	dir, old := t.TempDir(), time.Now().Add(-2*abandonedAfter)
	for name, at := range map[string]time.Time{
		".app.123": old, ".app.124.old": old, ".app.tar.zst.125": old, ".app.126": time.Now(), ".app.d": old, "app": old, ".other.127": old,
	} {
		must.Do(t, errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "file"), nil, 0o600),
			os.Chtimes(filepath.Join(dir, name), at, at)))
	}
	must.Do(t, RemoveAbandoned(dir, ".app."))
	entries := must.Get(os.ReadDir(dir)).In(t)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	must.Same(t, ".app.126 .app.d .app.tar.zst.125 .other.127 app", strings.Join(left, " "), "left")
}

// TestOpenNamesTheArchive: an error names the file that was given, not the directory that it is unpacked to.
func TestOpenNamesTheArchive(t *testing.T) {
	t.Parallel()
	pack := func(t *testing.T, change func(dir string)) string {
		dir, m := complete(t, t.TempDir(), "a")
		to := filepath.Join(t.TempDir(), "app.tar.zst")
		change(dir)
		must.Get(Replace(dir, to, m)).In(t)
		return to
	}
	for reason, row := range map[string]struct {
		change  func(dir string)
		problem string
	}{
		"an altered manifest": {func(dir string) {
			text, err := os.ReadFile(filepath.Join(dir, manifestName))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, manifestName), append(text, '\n'), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "manifest.json was altered"},
		"no JSON": {func(dir string) {
			must.Do(t, os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o600))
		}, "manifest.json is damaged"},
	} {
		path := pack(t, row.change)
		_, err := Open(path, nil)
		if err == nil || !strings.HasPrefix(err.Error(), path+": "+row.problem) || strings.Contains(err.Error(), "restore-") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.tar.zst")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	_, err := Open(empty, nil)
	if err == nil || err.Error() != empty+": it is not a complete backup: manifest.json: no such file or directory" {
		t.Errorf("an empty file: %v", err)
	}
}

// A pipe that nobody writes to would keep a restore waiting, and nothing would say for what.
func TestOpenRefusesPipes(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.tar.zst")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	if _, err := Open(pipe, nil); err == nil || !strings.Contains(err.Error(), pipe+" is not a regular file or a directory") {
		t.Errorf("the error is %v", err)
	}
}

// The directory that an archive is unpacked to is not something that a user knows.
func TestOpenNamesFilesOfTheArchive(t *testing.T) {
	t.Parallel()
	dir, m := complete(t, t.TempDir(), "a")
	m.Files = []File{{Path: manifestName}}
	name := filepath.Join(t.TempDir(), "twice.tar.zst")
	must.Do(t, pack(dir, name, m))
	if _, err := Open(name, nil); err == nil || !strings.Contains(err.Error(), `it has "manifest.json" twice`) ||
		strings.Contains(err.Error(), "restore-") {
		t.Errorf("the error is %v", err)
	}
}
