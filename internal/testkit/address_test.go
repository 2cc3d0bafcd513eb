package testkit

import (
	"net"
	"testing"
)

// TestFreeAddress: all addresses differ and can be used concurrently.
func TestFreeAddress(t *testing.T) {
	for range 20 {
		listener, err := net.Listen("tcp", FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
	}
}
