//go:build controlplane

package compile_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
