package desired

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/values"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// A busy machine must not decide for good what an upstream asks for, or what its status says.
func TestTookTooLong(t *testing.T) {
	for _, row := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"everything was evaluated", nil, false},
		{"a template", &parsing.Error{Limit: values.ErrTime}, true},
		{"a template that is too large, on any machine", &parsing.Error{Limit: values.ErrLimit}, false},
		{"an expression", &rules.EvalError{Err: rules.ErrTime}, true},
		{"an expression that costs too much, on any machine", &rules.EvalError{Cause: rules.CauseCost}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := tookTooLong(fmt.Errorf("rendering a: %w", row.err)); got != row.want {
				t.Errorf("took too long: %v", got)
			}
		})
	}
}
