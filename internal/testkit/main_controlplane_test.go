//go:build controlplane

package testkit_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithAudit(), testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces))
}
