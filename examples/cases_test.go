package examples_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// TestCases runs the cases of each example as its author would.
func TestCases(t *testing.T) {
	for _, e := range withSources(t) {
		t.Run(e.name(), func(t *testing.T) {
			if _, err := os.Stat(e.path("cases")); err != nil {
				t.Fatalf("the example has no cases: %v", err)
			}
			args := []string{"test", "-v", e.path("cases")}
			if golden.Updating() {
				args = append(args, "--update")
			}
			var out bytes.Buffer
			if code := cli.Main(args, cli.IO{Out: &out, Err: &out}); code != 0 {
				t.Errorf("exit code %d\n%s", code, &out)
			}
		})
	}
}
