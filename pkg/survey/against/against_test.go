package against

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// TestDocumentOf: a change has the document of its object, not that of the downstream's number; the object of
// deletion.before has none.
func TestDocumentOf(t *testing.T) {
	is := &reconcile.Current{Documents: []map[string]any{{"kind": "first"}, {"kind": "second"}}}
	for _, row := range []struct {
		reason string
		change preview.Change
		want   any
	}{
		{"the second object of the first downstream", preview.Change{Index: 0, Object: 1}, "second"},
		{"of deletion.before", preview.Change{Index: operator.BeforeIndex}, nil},
		{"nothing is rendered while the upstream is being deleted", preview.Change{Index: 0, Object: 2}, nil},
	} {
		if got := documentOf(is, row.change)["kind"]; got != row.want {
			t.Errorf("%s: %v, want %v", row.reason, got, row.want)
		}
	}
}

// TestSame: what the old config would write, and may be refused, is not known to be done without the new one.
func TestSame(t *testing.T) {
	unchecked := preview.Change{Action: preview.Update, State: operator.StateUpdate, Note: "not checked by a dry run"}
	if (&transition{}).same(true, &unchecked, &unchecked) {
		t.Error("a write that is not checked counts as done by the old config")
	}
	waits := preview.Change{Action: preview.Wait, Reason: "first must exist", Note: "not checked by a dry run"}
	if !(&transition{}).same(false, &waits, &waits) {
		t.Error("what waits for the same with both counts as changed")
	}
}
