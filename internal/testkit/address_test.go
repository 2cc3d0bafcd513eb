package testkit

import (
	"net"
	"testing"
)

// TestFreeAddress: there are as many as one wants, one beside the other.
func TestFreeAddress(t *testing.T) {
	for range 20 {
		listener, err := net.Listen("tcp", FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
	}
}
