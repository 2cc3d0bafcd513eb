//go:build controlplane

package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestRefused: what is wrong with values is said by helm, before anything is in the cluster, with the value's path. The
// comment in the file of cases says how one is written.
func TestRefused(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/refusals.txtar")
	if err != nil || len(archive.Files) < 60 {
		t.Fatalf("not all cases are there: %v", err)
	}
	for _, section := range archive.Files {
		t.Run(section.Name, func(t *testing.T) {
			t.Parallel()
			args := []string{"template", "test", chart, "--values=testdata/values/minimal.yaml"}
			lines := slices.Collect(strings.Lines(string(section.Data)))
			for _, line := range lines[:len(lines)-1] {
				arg, isFile := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "+")
				if isFile {
					key, text, _ := strings.Cut(arg, "=")
					arg = "--set-file=" + key + "=" + write(t, "given.yaml", text)
				}
				args = append(args, arg)
			}
			stdout, stderr, err := helm(t, args...)
			says := strings.ReplaceAll(strings.TrimSuffix(lines[len(lines)-1], "\n"), `\n`, "\n")
			if err == nil || says == "" || !strings.Contains(stderr, says) {
				t.Errorf("%v: want it to say %q:\n%s", err, says, stderr)
			}
			if stdout != "" {
				t.Errorf("it renders\n%s", stdout)
			}
		})
	}
}
