//go:build controlplane

package cli_test

import "testing"

// TestPlanOfDefaults runs the cases that depend on what only a real API server fills in.
func TestPlanOfDefaults(t *testing.T) { surveyCases(t, "testdata/server/*.txtar") }
