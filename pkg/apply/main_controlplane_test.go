//go:build controlplane

package apply

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithCRDs("testdata/crds"), testkit.WithControllers(controlplane.GarbageCollector))
}
