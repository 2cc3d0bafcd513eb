package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)\(`)
)

// testsDefined returns the names of all tests.
func testsDefined(t *testing.T) map[string]bool {
	t.Helper()
	defined := map[string]bool{}
	for _, dir := range []string{"../pkg", "../internal", "../charts", "../examples"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range definedTest.FindAllStringSubmatch(string(text), -1) {
				defined[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return defined
}

// TestPagesNameTestsThatExist: who wants to see how a claim is tested finds the test by its name.
func TestPagesNameTestsThatExist(t *testing.T) {
	defined := testsDefined(t)
	for _, name := range []string{"security.md", "design.md", "upgrading-crds.md"} {
		for _, m := range namedTest.FindAllStringSubmatch(read(t, name), -1) {
			if !defined[m[1]] {
				t.Errorf("%s: there is no test %s", name, m[1])
			}
		}
	}
}

// TestSecurityNamesItsTests: each claim in a table of security.md names at least one test.
func TestSecurityNamesItsTests(t *testing.T) {
	claims, inTable := 0, false
	for n, line := range strings.Split(read(t, "security.md"), "\n") {
		if !strings.HasPrefix(line, "|") {
			inTable = false
			continue
		}
		if strings.HasSuffix(line, "| test |") {
			inTable = true
			continue
		}
		if !inTable || strings.HasPrefix(line, "|---") {
			continue
		}
		claims++
		names := namedTest.FindAllStringSubmatch(line, -1)
		if len(names) == 0 && !strings.Contains(line, "[below]") {
			t.Errorf("security.md:%d: the claim names no test", n+1)
		}
	}
	if claims < 15 {
		t.Errorf("only %d claims were found", claims)
	}
}
