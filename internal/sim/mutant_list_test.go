package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// mutant is a fault that the engine once had, or that a guard in it prevents, as a text replacement in a file.
type mutant struct {
	name, file, old, new string
}

var mutants = []mutant{
	{"a deletion is carried out before its watch shows it", "pkg/reconcile/finalize.go",
		"	if r.watchLagsDeletion() {", "	if false && r.watchLagsDeletion() {"},
	{"the cache is preferred to a newer response", "pkg/reconcile/memory/responses.go",
		"	case fresh.Live == nil:\n", "	case true:\n"},
	{"a delete has no uid", "pkg/apply/delete.go",
		"		Preconditions:     &metav1.Preconditions{UID: &uid},\n", ""},
	{"a finalizer is removed without reading what the status records", "pkg/reconcile/attempt/deletion.go",
		"	missing, err := r.ReadRecorded(ctx, in.Leftovers)", "	missing, err := []operator.Owned(nil), error(nil)"},
	{"a superseded object is deleted before its successor exists", "pkg/operator/decide/leftovers.go",
		"		case inPlace(current):", "		case true:"},
	{"recorded objects that the cache does not show are not read", "pkg/reconcile/attempt/gather.go",
		"	for r.FindUnseen(ctx) { // the cache may have lost more meanwhile", "	for false {"},
	{"a write to the upstream is forgotten before its event", "pkg/reconcile/begin.go",
		"	if ahead != nil && ahead.GetUID()", "	if false && ahead.GetUID()"},
	{"an accepted deletion counts as the end of the object", "pkg/reconcile/act/remove.go",
		"	if answer.Gone || x.Live == nil || x.Client.Dry() {", "	if true {"},
	{"what is not wanted any more goes at once", "pkg/operator/decide/used.go",
		"; user != \"\" {", "; user != \"\" && false {"},
	{"what was released counts as gone", "pkg/reconcile/attempt/note.go",
		"		n.Memory.NoteReleased(n.Downstream, n.Answer, n.Began)", "		n.Memory.NoteGone(n.UID, n.Began)"},
	{"a session deletes although its config is about to be replaced", "pkg/reconcile/deselected.go",
		"	return r.Host.DeletesLater(r.Ref, r.Selected)", "	return 0"},
	{"a leader writes after the renew deadline", "pkg/leadership/tenure.go",
		"return t.renewals > 0 && (t.ended != nil || ", "return false && (t.ended != nil || "},
}

// TestMutantsApply checks that TestMutants, which does not run by default, finds the text that each fault changes, and
// that what it makes of it compiles.
func TestMutantsApply(t *testing.T) {
	changed := map[string]string{}
	for _, m := range mutants {
		path, err := filepath.Abs(filepath.Join("../..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		text := []byte(changed[path])
		if len(text) == 0 {
			if text, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: %s has %d times %q, want once", m.name, m.file, n, m.old)
		}
		changed[path] = strings.Replace(string(text), m.old, m.new, 1)
	}
	if out, err := exec.Command("go", "vet", "-overlay", overlayOf(t, changed), ".").CombinedOutput(); err != nil {
		t.Errorf("with all of them at once: %v\n%s", err, out)
	}
}

// overlayOf returns the file of a go command's -overlay with other texts for files, by their paths.
func overlayOf(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for path, text := range texts {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		must.Do(t, os.WriteFile(replace[path], []byte(text), 0o600))
	}
	text := must.Get(json.Marshal(map[string]any{"Replace": replace})).In(t)
	overlay := filepath.Join(dir, "overlay.json")
	must.Do(t, os.WriteFile(overlay, text, 0o600))
	return overlay
}
