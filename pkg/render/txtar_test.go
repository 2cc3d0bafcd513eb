package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
)

// TestCases renders testdata/*.txtar. The comment gives the reason; the files are `template`, optionally `upstream`,
// `params` and `inputs` (YAML), and either `document` (JSON) or `error`.
func TestCases(t *testing.T) {
	golden.Cases(t, "testdata/*.txtar", func(t *testing.T, c *golden.Case) {
		name, got := renderCase(t, c)
		c.Want(t, name, got)
		c.WantNone(t, map[string]string{"document": "error", "error": "document"}[name])
	})
}

// renderCase returns the section with the result, and its text.
func renderCase(t *testing.T, c *golden.Case) (name, text string) {
	tmpl, err := Compile(c.Section("template"), Options{})
	if err != nil {
		return "error", "compiling: " + strings.ReplaceAll(err.Error(), "\n", "\ncompiling: ") + "\n"
	}
	doc, err := tmpl.Execute(program.Data{
		Upstream: parseObject(t, c.Section("upstream")), Params: parseObject(t, c.Section("params")), Inputs: parseObject(t, c.Section("inputs")),
	})
	if err != nil {
		var e *parsing.Error
		if !errors.As(err, &e) {
			t.Errorf("%T is no *parsing.Error", err)
		}
		return "error", "rendering: " + err.Error() + "\n"
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		t.Fatal(err)
	}
	return "document", out.String()
}
