//go:build !controlplane

package cli_test

import (
	"os"
	"testing"

	"github.com/corollary-dev/corollary/pkg/cli"
)

func TestMain(m *testing.M) {
	runAsCommand()
	runAsHanging()
	cli.RunAsLogging()
	os.Exit(m.Run())
}
