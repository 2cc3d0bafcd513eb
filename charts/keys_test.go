package charts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/config/schema"
)

// TestKeys writes what the chart's templates know of the keys of config files, since values.schema.json cannot look
// into the texts of operatorFiles.
func TestKeys(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(schema.Operator(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# The keys of config files: those below each, or the words that it may be; {} is anything. What is true of a list's\n" +
		"# items stands at the list. Made by a test from the schema of config files; `make golden` writes it anew.\n")
	writeKeys(t, &b, object(t, root, "$defs"), root, "", nil)
	golden.File(t, "corollary/files/config.yaml", []byte(b.String()))
}

func writeKeys(t *testing.T, b *strings.Builder, definitions, schema map[string]any, indent string, above []string) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) > 0 && schema["additionalProperties"] != false {
		t.Fatalf("the schema allows keys beside %v: the chart would refuse them", slices.Sorted(maps.Keys(properties)))
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		value := object(t, properties, key)
		if items, ok := value["items"].(map[string]any); ok {
			value = items
		}
		ref, _ := value["$ref"].(string)
		if slices.Contains(above, ref) {
			value = map[string]any{} // a block that holds itself: the inner one may be anything
		} else if ref != "" {
			value = object(t, definitions, strings.TrimPrefix(ref, "#/$defs/"))
		}
		b.WriteString(indent + key + ":")
		words, _ := value["enum"].([]any)
		switch {
		case value["properties"] != nil:
			b.WriteString("\n")
			writeKeys(t, b, definitions, value, indent+"  ", append(slices.Clone(above), ref))
		case len(words) > 0:
			b.WriteString(" [")
			for i, word := range words {
				b.WriteString(strings.Repeat(", ", min(i, 1)) + word.(string))
			}
			b.WriteString("]\n")
		default:
			b.WriteString(" {}\n")
		}
	}
}
