package compile_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Each case is a config, and what Compile says of the fields of its templates.
func TestFieldsOfTemplates(t *testing.T) {
	golden.Cases(t, "testdata/fields/*.txtar", func(t *testing.T, c *golden.Case) {
		p, out := compiledText(t, string(c.Files[0].Data), compile.Options{})
		if p == nil {
			out += "\n"
		}
		for i := 0; p != nil && i < len(p.Warnings); i++ {
			out += "warning: " + p.Warnings[i].Error() + "\n"
		}
		c.Want(t, "want", out)
	})
}
