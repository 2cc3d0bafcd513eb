package rules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
)

// The time of an evaluation depends on the machine, so a caller must be able to distinguish ErrTime from an error that
// a retry repeats.
func TestErrTime(t *testing.T) {
	env := must.Get(NewEnv(EnvOptions{})).In(t)
	must.Get(env.Variable("copies", "self.spec.list.map(x, x)")).In(t)
	self := map[string]any{"spec": map[string]any{"list": make([]any, 1000)}}
	for _, row := range []struct {
		reason, expr string
		late         bool
		want         error
	}{
		{"in time", "self.spec.list.map(x, x).size()", false, nil},
		{"too late", "self.spec.list.map(x, x).size()", true, ErrTime},
		{"through a variable", "size(variables.copies)", true, ErrTime},
		{"through a variable, in a loop", "variables.copies.exists(x, x == 1)", true, ErrTime},
		{"without a loop it ends by itself", "size(self.spec.list)", true, nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := must.Get(env.Any(row.expr, Upstream, "")).In(t)
			b := NewBudget(t.Context())
			if row.late {
				b.until = time.Now().Add(-time.Second)
			}
			_, got := p.Eval(Vars{Self: self}, b)
			if !errors.Is(got, row.want) || b.Expired() != (row.want != nil) {
				t.Errorf("error %v, expired %v", got, b.Expired())
			}
			if failed := (*EvalError)(nil); errors.As(got, &failed) && (failed.Cause != CauseCost || !strings.Contains(failed.Redacted(), tooLong)) {
				t.Errorf("cause %v: %s", failed.Cause, failed.Redacted())
			}
		})
	}
}
