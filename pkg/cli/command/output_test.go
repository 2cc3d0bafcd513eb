package command

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/corollary-dev/corollary/pkg/offline"
)

// texts are strings that a careless encoder or parser makes something else of.
var texts = []any{"", " ", "~", "null", "true", "on", "y", "n", "=", "*a", "&a", "!a", "%a", "@a", "`a", "- a", "a: b", "a #b", "#",
	"0777", "0o17", "1_000", "1e3", ".inf", ".nan", "1.10", "2026-11-20", "12:30:45", "a\x00b", "\t", "\n", "a\nb", "a\n", "a\n\n",
	"\n---\nkind: Secret",
	" a\n b", "{{ .x }}", "🙂", "\u2028", "\ufeffa", "\u0085", `\`, `"`, "'"}

// TestPrintedIsReadBack: whoever pipes the output on gets the values that were printed, in each format.
func TestPrintedIsReadBack(t *testing.T) {
	ordinary := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "texts": texts,
		"numbers": []any{int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1), 0.1, 1e21, -2.5e-9},
		"keys":    map[string]any{"=": "b", "1": "c", "true": "d", "": "e", "a.b/c": "f"},
		"none":    nil, "map": map[string]any{}, "list": []any{},
	}
	merging := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "texts": append([]any{"<<"}, texts...),
		"data": map[string]any{"<<": map[string]any{"stolen": "yes"}},
	}
	for _, object := range []map[string]any{ordinary, merging} {
		for _, name := range []string{YAML, JSON, KYAML} {
			var out bytes.Buffer
			if err := (&Output{Choice{Value: name}}).Documents(&out, []map[string]any{object}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			found, errs := offline.Read([]string{"-"}, bytes.NewReader(out.Bytes()))
			if len(errs) > 0 || len(found) != 1 {
				t.Fatalf("%s: reading it back: %d objects, %v\n%s", name, len(found), errs, out.String())
			}
			for key, want := range object {
				if got := found[0].Object.Object[key]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %s came back as\n%#v, want\n%#v", name, key, got, want)
				}
			}
		}
	}
}

// TestYAMLStaysYAML: only what YAML cannot hold safely is written as JSON.
func TestYAMLStaysYAML(t *testing.T) {
	var out bytes.Buffer
	if err := (&Output{Choice{Value: YAML}}).Documents(&out, []map[string]any{{"a": "b"}, {"<<": "c"}, {"d": int64(1)}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a: b\n---\n{\n    \"<<\": \"c\"\n}\n---\nd: 1\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
