//go:build !controlplane

package cli_test

import (
	"os"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) {
	runAsCommand()
	runAsHanging()
	if err := testkit.Parallel(16); err != nil { // most of them wait for processes
		panic(err)
	}
	os.Exit(m.Run())
}
