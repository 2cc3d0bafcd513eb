package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the documents and errors that were seen into testdata")

// TestCases renders testdata/*.txtar. The comment gives the reason; the files are `template`, optionally `upstream`,
// `params` and `inputs` (YAML), and either `document` (JSON) or `error`.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Error("the case gives no reason")
	}
	section := map[string]string{}
	for _, f := range archive.Files {
		section[f.Name] = string(f.Data)
	}
	name, got := renderCase(t, section)
	if *update {
		writeCase(t, file, archive, name, got)
		return
	}
	want, ok := section[name]
	if !ok {
		t.Fatalf("unexpected %s:\n%s", name, got)
	}
	if got != want {
		t.Errorf("%s differs\ngot:\n%swant:\n%s", name, got, want)
	}
}

// renderCase gives the section that tells the outcome, and its text.
func renderCase(t *testing.T, section map[string]string) (name, text string) {
	tmpl, err := Compile(section["template"], Options{})
	if err != nil {
		return "error", "compiling: " + strings.ReplaceAll(err.Error(), "\n", "\ncompiling: ") + "\n"
	}
	doc, err := tmpl.Execute(Data{
		Upstream: parseObject(t, section["upstream"]), Params: parseObject(t, section["params"]), Inputs: parseObject(t, section["inputs"]),
	})
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%T is no *Error", err)
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

func writeCase(t *testing.T, file string, archive *txtar.Archive, name, text string) {
	var kept []txtar.File
	for _, f := range archive.Files {
		if f.Name != "document" && f.Name != "error" {
			kept = append(kept, f)
		}
	}
	kept = append(kept, txtar.File{Name: name, Data: []byte(text)})
	archive.Files = kept
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// parseObject reads an upstream as the API server's clients do: integers as int64.
func parseObject(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := fromJSON(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%q is no object", text)
	}
	return m
}
