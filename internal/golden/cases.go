package golden

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Case is one case: an archive whose comment is the reason for the case, and whose files are its sections, with input
// and expected output.
type Case struct {
	*txtar.Archive
	checked bool
}

// Cases runs each file that matches the pattern, relative to the test's directory, as a subtest named like the file
// without .txtar. With -update it writes the file afterwards. It fails if no file matches, and for a case without a
// reason or a comparison.
func Cases(t *testing.T, pattern string, run func(t *testing.T, c *Case)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases match %s: %v", pattern, err)
	}
	for _, path := range paths {
		path, err := filepath.Abs(path) // run may change the directory
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { runCase(t, path, run) })
	}
}

func runCase(t *testing.T, path string, run func(t *testing.T, c *Case)) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Archive: archive}
	if len(bytes.TrimSpace(c.Comment)) == 0 {
		t.Fatal("the case gives no reason: write it above the first section")
	}
	run(t, c)
	if !c.checked {
		t.Error("the case checks nothing")
	}
	if *update {
		write(t, path, txtar.Format(archive))
	}
}

// Section returns the text of the section, "" if there is none.
func (c *Case) Section(name string) string {
	if i := c.index(name); i >= 0 {
		return string(c.Files[i].Data)
	}
	return ""
}

// Want fails the test unless the section exists and is equal to got. With -update the section becomes got; a missing
// one is added at the end.
func (c *Case) Want(t *testing.T, section, got string) {
	t.Helper()
	c.checked = true
	i := c.index(section)
	switch {
	case *update && i < 0:
		c.Files = append(c.Files, txtar.File{Name: section, Data: []byte(got)})
	case *update:
		c.Files[i].Data = []byte(got)
	case i < 0:
		t.Errorf("%sthe case has no section %s, but now there is:\n%s", c.Comment, section, got)
	default:
		if diff := cmp.Diff(string(c.Files[i].Data), got); diff != "" {
			t.Errorf("%s%s differs (- file, + now); make golden writes it anew:\n%s", c.Comment, section, diff)
		}
	}
}

// WantNone fails the test if the section exists: for a result with another section instead. With -update the section is
// removed.
func (c *Case) WantNone(t *testing.T, section string) {
	t.Helper()
	c.checked = true
	i := c.index(section)
	switch {
	case i < 0:
	case *update:
		c.Files = slices.Delete(c.Files, i, i+1)
	default:
		t.Errorf("%sthe case has a section %s, which did not come out:\n%s", c.Comment, section, c.Files[i].Data)
	}
}

func (c *Case) index(section string) int {
	return slices.IndexFunc(c.Files, func(f txtar.File) bool { return f.Name == section })
}
