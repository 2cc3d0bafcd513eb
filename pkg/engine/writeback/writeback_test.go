package writeback

import (
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// If each write changes what is desired of its row, the time to the next one grows; if only the state changes, it does
// not.
func TestWriteBackSpacing(t *testing.T) {
	for _, c := range []struct {
		reason  string
		changes bool
		want    time.Duration
	}{
		{"the state changes", false, minSpacing},
		{"what is desired changes", true, maxSpacing},
	} {
		w := &Writer{Options: Options{Operator: "spacing", Show: func(string) {}}, states: map[operator.Ref]*rowState{}}
		ref := operator.Ref{Name: "1"}
		var desired canonical.Sum
		for i := range byte(10) {
			if c.changes {
				desired[0] = i
			}
			state := report.RowState{Message: string('a' + rune(i))}
			w.Report(ref, 1, state, desired)
			w.noteWritten(ref, w.states[ref], state, desired)
		}
		if got := w.states[ref].spacing; got != c.want {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
	metrics.Forget("spacing")
}

// A reload loads the config again: only what it says counts, not where it is in memory.
func TestWriteBackIdentity(t *testing.T) {
	of := func(secret string) string {
		server := &query.DatabaseServer{DSNFrom: query.DSNFrom{Secret: &query.SecretKey{Namespace: "a", Name: secret, Key: "url"}}}
		return identityOf(&query.Source{Rows: query.Rows{MySQL: server}, WriteBack: "UPDATE apps SET state = $state WHERE id = $id"})
	}
	if first, again := of("x"), of("x"); first != again || first == of("y") {
		t.Error("it does not depend on the Secret, or on more")
	}
}
