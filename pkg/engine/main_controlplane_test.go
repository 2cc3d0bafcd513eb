//go:build controlplane

package engine_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithCRDs("../../testdata/crds"), testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces),
		testkit.WithParallel(8))
}
