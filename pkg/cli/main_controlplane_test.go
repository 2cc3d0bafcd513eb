//go:build controlplane

package cli_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) {
	runAsCommand()
	runAsHanging()
	testkit.Main(m, testkit.WithCRDs("../../testdata/widgets/crd.yaml"), testkit.WithAudit(), testkit.WithParallel(8))
}
