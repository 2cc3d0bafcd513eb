package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddress returns a free address of this machine, as host:port, for the next process to start. Another process may
// take the port before, so on Linux the host is a different one of 127.0.0.0/8 each time, and 127.0.0.1 on other
// systems.
func FreeAddress() (string, error) {
	var failures []error
	for _, host := range []string{fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254)), "127.0.0.1"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
		failures = append(failures, err)
	}
	return "", fmt.Errorf("looking for a free address: %w", errors.Join(failures...))
}
