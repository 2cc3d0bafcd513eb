//go:build controlplane

package cli_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestPlanOfDefaults runs the cases that depend on what only a real API server fills in.
func TestPlanOfDefaults(t *testing.T) {
	t.Parallel()
	golden.Cases(t, "testdata/server/*.txtar", func(t *testing.T, c *golden.Case) {
		t.Parallel()
		connected(t)
		surveyCase(t, c, testkit.Namespace(t))
	})
}
