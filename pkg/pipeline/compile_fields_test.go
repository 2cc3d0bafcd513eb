package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Each case is a config, and what Compile says of the fields of its templates.
func TestFieldsOfTemplates(t *testing.T) {
	golden.Cases(t, "testdata/fields/*.txtar", func(t *testing.T, c *golden.Case) {
		dir := t.TempDir()
		file := filepath.Join(dir, "operator.yaml")
		if err := os.WriteFile(file, c.Files[0].Data, 0o600); err != nil {
			t.Fatal(err)
		}
		files, errs := config.Load(config.Options{Files: []string{file}})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		source, err := kinds.Offline()
		if err != nil {
			t.Fatal(err)
		}
		p, errs, err := pipeline.Compile(files[0], pipeline.Options{Kinds: source})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, e := range errs {
			out.WriteString(e.Error() + "\n")
		}
		for i := 0; p != nil && i < len(p.Warnings); i++ {
			out.WriteString("warning: " + p.Warnings[i].Error() + "\n")
		}
		c.Want(t, "want", strings.ReplaceAll(out.String(), dir+"/", ""))
	})
}
