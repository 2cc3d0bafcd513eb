package translate

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestEveryMacroIsKnown fails if a new version of Kubernetes has another macro.
func TestEveryMacroIsKnown(t *testing.T) {
	env := must.Get(rules.NewEnv(rules.EnvOptions{})).In(t)
	known := map[string]bool{"has": true, "optMap": true, "optFlatMap": true}
	for _, name := range iterationMacros {
		known[name] = true
	}
	for _, macro := range env.Base().Macros() {
		if !known[macro.Function()] {
			t.Errorf("the macro %s is not known", macro.Function())
		}
	}
}
