//go:build controlplane

package main_test

import (
	"os/exec"
	"testing"
)

// The README's first command does what it says: each step of the demo checks what it shows, and fails where that did not come.
func TestDemo(t *testing.T) {
	t.Parallel()
	demo := exec.CommandContext(t.Context(), "make", "demo")
	demo.Dir = "../.."
	if out, err := demo.CombinedOutput(); err != nil {
		t.Errorf("make demo: %v\n%s", err, out)
	}
}
