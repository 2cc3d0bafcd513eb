package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goText matches what Go prints for a missing value, or for a verb that does not fit.
var goText = regexp.MustCompile(`<nil>|%!\w?\(`)

// TestMessagesAreNotGo: messages say null, or name what is missing. The golden files have the messages of every command
// and check.
func TestMessagesAreNotGo(t *testing.T) {
	read := 0
	for _, dir := range []string{"pkg/cli", "pkg/config", "pkg/operator", "pkg/rules", "docs", "examples", "charts"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".txtar", ".yaml", ".txt", ".json", ".md"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for n, line := range strings.Split(string(text), "\n") {
				if found := goText.FindString(line); found != "" && !aboutHelm(line) {
					t.Errorf("%s:%d: %s: %s", path, n+1, found, strings.TrimSpace(line))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Errorf("only %d files were read", read)
	}
}

// aboutHelm reports whether a line says what Helm or sprig print.
func aboutHelm(line string) bool {
	return strings.Contains(line, "no value") || strings.Contains(line, "printf")
}
