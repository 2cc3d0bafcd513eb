//go:build controlplane

package main_test

import (
	"os/exec"
	"testing"
)

// TestClusters runs the command of the page: each step of it checks what it shows.
func TestClusters(t *testing.T) {
	t.Parallel()
	demo := exec.CommandContext(t.Context(), "make", "demo-clusters")
	demo.Dir = "../.."
	if out, err := demo.CombinedOutput(); err != nil {
		t.Errorf("make demo-clusters: %v\n%s", err, out)
	}
}
