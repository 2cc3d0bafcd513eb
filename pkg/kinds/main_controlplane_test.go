//go:build controlplane

package kinds

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, testkit.WithCRDs("testdata/crds")) }
