package rules

import (
	"errors"
	"testing"
	"time"
)

// How long an evaluation takes depends on the machine: whoever gets no result must be able to tell that from an error that stays.
func TestLackOfTimeCanBeTold(t *testing.T) {
	env, err := NewEnv(EnvOptions{})
	if err != nil {
		t.Fatal(err)
	}
	self := map[string]any{"spec": map[string]any{"list": make([]any, 1000)}}
	for _, row := range []struct {
		reason, expr string
		late         bool
		want         error
	}{
		{"in time", "self.spec.list.map(x, x).size()", false, nil},
		{"too late", "self.spec.list.map(x, x).size()", true, ErrTime},
		{"without a loop it ends by itself", "size(self.spec.list)", true, nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p, err := env.Any(row.expr, Upstream, "")
			if err != nil {
				t.Fatal(err)
			}
			b := NewBudget(t.Context())
			if row.late {
				b.until = time.Now().Add(-time.Second)
			}
			_, got := p.Eval(Vars{Self: self}, b)
			if !errors.Is(got, row.want) || b.Expired() != (row.want != nil) {
				t.Errorf("error %v, expired %v", got, b.Expired())
			}
		})
	}
}
