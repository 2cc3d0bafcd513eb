//go:build controlplane

package main_test

import (
	"os/exec"
	"testing"
)

// TestDemo runs the README's first command: each step of the demo checks what it shows.
func TestDemo(t *testing.T) {
	t.Parallel()
	demo := exec.CommandContext(t.Context(), "make", "demo")
	demo.Dir = "../.."
	if out, err := demo.CombinedOutput(); err != nil {
		t.Errorf("make demo: %v\n%s", err, out)
	}
}
