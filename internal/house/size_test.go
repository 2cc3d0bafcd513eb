package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	maxFunction = 60  // lines of a function, from its first to its last brace
	maxFile     = 500 // lines of a file
	maxMedian   = 125 // at least half of the files have no more lines
	// maxLong is the percentage of functions that may be longer than maxFunction.
	maxLong = 3
)

func TestFunctionsAreShort(t *testing.T) {
	total := 0
	var long []string
	for _, s := range product(t) {
		for _, declaration := range s.file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			total++
			lines := s.fset.Position(function.End()).Line - s.fset.Position(function.Pos()).Line + 1
			if lines > maxFunction {
				long = append(long, s.at(function.Pos())+": "+function.Name.Name)
			}
		}
	}
	if len(long)*100 > total*maxLong {
		t.Errorf("%d of %d functions have more than %d lines:\n%s", len(long), total, maxFunction, strings.Join(long, "\n"))
	}
}

func TestFilesAreShort(t *testing.T) {
	var lines []int
	for _, s := range sources(t) {
		if s.lines > maxFile {
			t.Errorf("%s has %d lines, more than %d", s.path, s.lines, maxFile)
		}
		if !s.test {
			lines = append(lines, s.lines)
		}
	}
	slices.Sort(lines)
	if median := lines[len(lines)/2]; median > maxMedian {
		t.Errorf("half of the files have more than %d lines, %d at the least", maxMedian, median)
	}
}

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	comments := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		said := s.file.Doc.Text()
		if said == "" {
			comments[s.dir] += 0
			continue
		}
		comments[s.dir]++
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(said, want) {
			t.Errorf("%s: the package comment does not begin with %q", s.path, want)
		}
	}
	for dir, count := range comments {
		if count != 1 {
			t.Errorf("%s has %d package comments instead of one", dir, count)
		}
	}
}
