package cli_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// memory starts an API server in memory for this test alone, with the kind Widget, and returns a namespace.
func memory(t *testing.T) (ns string) {
	t.Helper()
	bubble.Listen(t, "testdata/offline/crd.yaml")
	return testkit.Namespace(t)
}
