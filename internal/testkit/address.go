package testkit

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

// FreeAddress is controlplane.FreeAddress for the goroutine of the test.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
