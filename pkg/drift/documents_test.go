package drift_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
)

// manager is the field manager that applies the documents of testdata/documents.
const manager = "appoperator"

// document is one file of testdata/documents, which is applied. testdata/live has the stored object.
type document struct {
	name   string
	reason string // why it is in the table
	// normalized says what the API server changes; if "", the projection must be equal to what was applied.
	normalized string
	desired    map[string]any
}

func documents(t testing.TB) []document {
	t.Helper()
	files, err := filepath.Glob("testdata/documents/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	out := make([]document, 0, len(files))
	for _, file := range files {
		text := must.Get(os.ReadFile(file)).In(t)
		d := document{name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if s, ok := strings.CutPrefix(line, "# reason: "); ok {
				d.reason = s
			}
			if s, ok := strings.CutPrefix(line, "# normalized: "); ok {
				d.normalized = s
			}
		}
		if d.reason == "" {
			t.Fatalf("%s has no reason", file)
		}
		d.desired = formOf(t, parse(t, string(text)))
		out = append(out, d)
	}
	return out
}

// parse parses YAML or JSON as a client parses responses of the API server.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return parseJSON(t, data)
}

func parseJSON(t testing.TB, data []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("decoding %s: %v", data, err)
	}
	return canonicalNumbers(out).(map[string]any)
}

// canonicalNumbers converts numbers to the types in unstructured objects: int64 or float64.
func canonicalNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = canonicalNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = canonicalNumbers(v[i])
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

func formOf(t testing.TB, obj map[string]any) map[string]any {
	t.Helper()
	out := must.Get(canonical.Form(obj)).In(t)
	return out
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: parse(t, text)}
}

// recorded returns the API server's response to the apply of a document.
func recorded(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "live", name+".json"))
	if err != nil {
		t.Fatalf("%v: record it with go test -tags controlplane ./pkg/drift -update", err)
	}
	return &unstructured.Unstructured{Object: parseJSON(t, text)}
}
