//go:build controlplane

package charts

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithAudit(), testkit.WithCRDs("testdata/install/crds.yaml"), testkit.WithControllers(controlplane.GarbageCollector,
		controlplane.Namespaces, controlplane.Deployments, controlplane.ReplicaSets, controlplane.Jobs, controlplane.Disruptions))
}
