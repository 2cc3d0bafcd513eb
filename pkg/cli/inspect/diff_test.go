package inspect

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// TestDiff: two documents in, the fields in which they differ out.
func TestDiff(t *testing.T) {
	t.Parallel()
	golden.Cases(t, "testdata/diff/*.txtar", func(t *testing.T, c *golden.Case) {
		var out strings.Builder
		var words redact.Words
		if text := c.Section("words"); text != "" {
			words = redact.NewWords(text)
		}
		printDiffs(&out, command.Painter{On: strings.Contains(c.Section("color"), "always")}, "",
			docdiff.Documents(document(t, c.Section("before")),
				document(t, c.Section("after")), words))
		c.Want(t, "diff", strings.ReplaceAll(out.String(), "\x1b", "^"))
		if secret := strings.TrimSpace(c.Section("secret")); secret != "" && strings.Contains(out.String(), secret) {
			t.Errorf("the value %s is shown", secret)
		}
	})
}

func document(t *testing.T, text string) map[string]any {
	t.Helper()
	var doc map[string]any
	must.Do(t, yaml.Unmarshal([]byte(text), &doc))
	return doc
}

// TestMaskedDocument: a Secret's values are hidden wherever they stand, and nothing else is.
func TestMaskedDocument(t *testing.T) {
	secret := document(t,
		`{apiVersion: v1, kind: Secret, metadata: {name: p, annotations: {last: '{"data": {"k": "aHVudGVyMg=="}}', other: x}}, data: {k: aHVudGVyMg==}}`)
	out := must.Get(yaml.Marshal(redact.NewWords("data k metadata annotations last other").Document(secret))).In(t)
	want := "apiVersion: v1\ndata:\n  k: (masked)\nkind: Secret\nmetadata:\n  annotations:\n    last: (masked)\n    other: (masked)\n  " +
		"name: p\n"
	if string(out) != want {
		t.Errorf("masked is\n%s", out)
	}
	if other := document(t,
		`{apiVersion: v1, kind: ConfigMap, data: {k: v}}`); redact.Words(nil).Document(other)["data"].(map[string]any)["k"] != "v" {
		t.Error("a ConfigMap is masked")
	}
}
