package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the path of the repository from this package.
const root = "../.."

// module is the import path of the repository.
const module = "github.com/corollary-dev/corollary"

// source is one Go file.
type source struct {
	path  string // relative to the repository, with slashes
	dir   string // its folder, in the same form
	test  bool
	lines int
	file  *ast.File
	fset  *token.FileSet
}

// at returns FILE:LINE of a position.
func (s *source) at(pos token.Pos) string {
	return s.fset.Position(pos).String()
}

// within reports whether the file is in the folder or below it.
func (s *source) within(dir string) bool {
	return s.dir == dir || strings.HasPrefix(s.dir, dir+"/")
}

// sources returns every Go file of this module.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there is no Go file")
	}
	return all
}

// product returns the files of the program, without tests and development tools.
func product(t *testing.T) []*source {
	t.Helper()
	var files []*source
	for _, s := range sources(t) {
		if !s.test && (s.within("pkg") || s.within("cmd")) {
			files = append(files, s)
		}
	}
	return files
}

var readSources = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(name, entry.Name())
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		read, err := readSource(name)
		all = append(all, read)
		return err
	})
	return all, err
})

// skip returns fs.SkipDir for folders without code of this module.
func skip(name, base string) error {
	if name == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir // another module
	}
	return nil
}

func readSource(name string) (*source, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	s := &source{path: filepath.ToSlash(relative), fset: token.NewFileSet()}
	s.dir = path.Dir(s.path)
	s.test = strings.HasSuffix(s.path, "_test.go")
	s.lines = bytes.Count(data, []byte("\n"))
	s.file, err = parser.ParseFile(s.fset, s.path, data, parser.ParseComments)
	return s, err
}
