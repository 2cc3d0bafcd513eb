//go:build mutants

package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant is a fault that the engine once had, or that something in it is there to prevent, as a change of the text of a file.
type mutant struct {
	name, file, old, new string
}

var mutants = []mutant{
	{"a deletion is carried out before it is told how", "pkg/reconcile/finalize.go",
		"	if r.awaitsDeletion() {", "	if false && r.awaitsDeletion() {"},
	{"the cache is believed over what a request returned", "pkg/reconcile/memory.go",
		"	if fresh.live == nil {\n		return cached\n	}", "	if fresh.live == nil || true {\n		return cached\n	}"},
	{"a delete has no uid", "pkg/apply/delete.go",
		"		Preconditions:     &metav1.Preconditions{UID: &uid},\n", ""},
	{"a finalizer is removed without reading what the status names", "pkg/reconcile/finalize.go",
		"	missing, err := r.readRecorded(ctx, in.Leftovers)", "	missing, err := []pipeline.Owned(nil), error(nil)"},
	{"a superseded object is deleted before its successor exists", "pkg/pipeline/removal.go",
		"		case inPlace(current):", "		case true:"},
	{"what the cache does not show is not read", "pkg/reconcile/reconcile.go",
		"	if r.findUnseen(ctx) {", "	if false {"},
	{"a write to the upstream is forgotten before its echo", "pkg/reconcile/reconcile.go",
		"	if ahead != nil && ahead.GetUID()", "	if false && ahead.GetUID()"},
	{"a leader writes after the renew deadline", "pkg/leadership/tenure.go",
		"return t.renewals > 0 && (t.ended != nil || ", "return false && (t.ended != nil || "},
}

var failing = regexp.MustCompile(`(?m)^seed (\d+): (.*)$`)

// TestMutants holds that the simulation finds faults: each is put into a copy of a file, and the schedules that fail are counted.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			path, err := filepath.Abs(filepath.Join("../..", m.file))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), m.old) != 1 {
				t.Fatalf("%s has not exactly one %q", m.file, m.old)
			}
			changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
			replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string][]byte{changed: []byte(strings.Replace(string(text), m.old, m.new, 1)), overlay: replace} {
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, _ := exec.Command("go", "test", "-vet=off", "-overlay", overlay, ".", "-run", "TestSimulation", "-v", "-count=1",
				"-seed", fmt.Sprint(*first), "-seeds", fmt.Sprint(*seeds), "-survey").CombinedOutput() // that some fail is what is hoped for
			found := failing.FindAllStringSubmatch(string(out), -1)
			if len(found) == 0 {
				t.Fatalf("no schedule fails:\n%s", out)
			}
			of := (uint64(len(setups)) + 10) * *seeds
			t.Logf("found by %d of %d schedules: %.200s", len(found), of, found[0][2])
		})
	}
}
