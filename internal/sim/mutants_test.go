//go:build mutants

package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var failing = regexp.MustCompile(`(?m)^seed (\d+): (.*)$`)

// TestMutants checks that the simulation finds faults: it applies each to a copy of a file, and counts the schedules
// that fail.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("../..", m.file))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			overlay := overlayOf(t, map[string]string{path: strings.Replace(string(text), m.old, m.new, 1)})
			out, _ := exec.Command("go", "test", "-vet=off", "-overlay", overlay, ".", "-run", "TestSimulation", "-v", "-count=1",
				"-seed", fmt.Sprint(*first), "-seeds", fmt.Sprint(*seeds), "-survey").CombinedOutput() // some are expected to fail
			found := failing.FindAllStringSubmatch(string(out), -1)
			if len(found) == 0 {
				t.Fatalf("no schedule fails:\n%s", out)
			}
			of := (uint64(len(setups)) + 10) * *seeds
			t.Logf("found by %d of %d schedules: %.200s", len(found), of, found[0][2])
		})
	}
}
