package redact_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/redact"
)

func TestErrorf(t *testing.T) {
	inner := redact.Errorf("%s has the key %q, %d: %v", ".spec.a", "hunter2", 3, errors.New("hunter2"))
	for _, row := range []struct {
		reason, shown string
		err           error
	}{
		{"words stay, values go", ".spec.a has the key …, …: …", inner},
		{"a chain keeps its beginning", "rendering x: .spec.a has the key …, …: …", redact.Errorf("rendering %s: %w", "x", inner)},
		{"what wraps without a text of its own adds none", ".spec.a has the key …, …: …", fmt.Errorf("hunter2: %w", inner)},
		{"an error of which nothing is known", "x: " + redact.NotQuoted, redact.Errorf("x: %w", errors.New("hunter2"))},
		{"percent", "100%: …", redact.Errorf("100%%: %v", 1)},
	} {
		must.Same(t, row.shown, redact.Text(row.err, ""), row.reason)
		must.Same(t, row.shown, redact.WithoutValues(row.err).Error(), row.reason, "shown as")
	}
	if err := redact.WithoutValues(redact.Errorf("x: %w", io.EOF)); !errors.Is(err, io.EOF) {
		t.Error("the chain is cut")
	}
}

func TestPath(t *testing.T) {
	words := redact.NewWords("\n  containers: [{name: app, env: {{ .x }}}]", "a.example.com/key", "data")
	for path, want := range map[string]string{
		"spec.containers[0].env[12].name": "spec.containers[0].env[12].name",
		".spec.containers[name=app].env":  ".spec.containers[name=app].env",
		"data[hunter2]":                   "data[…",
		"data.hunter2.spec":               "data.…",
		"data[12345]":                     "data[…",
		"status.token":                    "…",
		"spec.containers\nhunter2":        "spec.containers…",
		"data['a.example.com/key']":       "data['a.example.com/key']",
	} {
		must.Same(t, want, words.Path(path), path, "is shown as")
	}
	must.Same(t, "data[x]", redact.Words(nil).Path("data[x]"), "without words a path is shown as")
}
