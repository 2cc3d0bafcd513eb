//go:build !controlplane

package cli_test

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	runAsCommand()
	runAsHanging()
	os.Exit(m.Run())
}
