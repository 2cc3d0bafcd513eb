// Package charts tests the Helm chart: its values and their schema, what it renders, and that a cluster takes that.
package charts

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/schema"
)

// TestValuesSchema holds the chart's values.schema.json to what it is made of: schema/base.json, which is written by
// hand; the comments of values.yaml, which are its descriptions; and the JSON Schema of config files.
func TestValuesSchema(t *testing.T) {
	base := readJSON(t, "schema/base.json")
	for _, v := range documentedValues(t) {
		property, whole := find(t, base, v.path)
		if property == nil {
			t.Errorf("schema/base.json knows no %s, which values.yaml has", v.path)
		} else if whole {
			property["description"] = v.meaning
		}
	}
	// Helm knew no later draft until its release 3.18.
	base["$schema"] = "http://json-schema.org/draft-07/schema#"
	base["title"] = "Values of the chart corollary"
	definitions := object(t, base, "definitions")
	for name, definition := range configDefinitions(t) {
		if _, taken := definitions[name]; taken {
			t.Errorf("schema/base.json defines %s, as the schema of config files does: give it another name", name)
		}
		definitions[name] = definition
	}
	golden.File(t, "corollary/values.schema.json", indented(t, base))
}

// configDefinitions returns the definitions of the config files' schema, with the file as a whole as Operator. The key
// that is above an operator in values is its name, so its head may be left out. A file of values that lies over
// another takes an operator away by null.
func configDefinitions(t *testing.T) map[string]any {
	t.Helper()
	text := bytes.ReplaceAll(schema.Operator(), []byte(`"#/$defs/`), []byte(`"#/definitions/`))
	var operator map[string]any
	must.Do(t, json.Unmarshal(text, &operator))
	definitions := object(t, operator, "$defs")
	delete(operator, "$defs")
	delete(operator, "$schema")
	required, _ := operator["required"].([]any)
	head := []any{"apiVersion", "kind", "metadata"}
	rest := slices.DeleteFunc(slices.Clone(required), func(key any) bool { return slices.Contains(head, key) })
	if len(rest) != len(required)-len(head) {
		t.Fatalf("the schema of config files demands %v, which lacks some of %v", required, head)
	}
	operator["required"] = rest
	operator["type"] = []any{"object", "null"}
	definitions["Operator"] = operator
	return definitions
}

// TestValuesAreDocumented: whatever the schema allows has a comment in values.yaml, which the chart's README lists.
func TestValuesAreDocumented(t *testing.T) {
	documented := map[string]bool{"global": true} // Helm's own, for charts that have this one as a part
	for _, v := range documentedValues(t) {
		documented[v.path] = true
	}
	base := readJSON(t, "schema/base.json")
	var look func(schema map[string]any, path string)
	look = func(schema map[string]any, path string) {
		properties, _ := resolve(t, base, schema)["properties"].(map[string]any)
		switch {
		case documented[path]:
		case properties == nil:
			t.Errorf("values.yaml has no comment that begins with # -- for %s, which schema/base.json has", path)
		default:
			for key := range properties {
				look(object(t, properties, key), strings.TrimPrefix(path+"."+key, "."))
			}
		}
	}
	look(base, "")
}

// find returns the schema of a value by its path, nil if there is none, and whether it is that value's own, not a
// definition that others share.
func find(t *testing.T, root map[string]any, path string) (schema map[string]any, own bool) {
	t.Helper()
	schema = root
	for key := range strings.SplitSeq(path, ".") {
		properties, _ := resolve(t, root, schema)["properties"].(map[string]any)
		next, ok := properties[key].(map[string]any)
		if !ok {
			return nil, false
		}
		own = schema["$ref"] == nil
		schema = next
	}
	return schema, own
}

// resolve returns the definition that a schema refers to, or the schema itself.
func resolve(t *testing.T, root, schema map[string]any) map[string]any {
	t.Helper()
	ref, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	return object(t, object(t, root, "definitions"), strings.TrimPrefix(ref, "#/definitions/"))
}

func object(t *testing.T, parent map[string]any, key string) map[string]any {
	t.Helper()
	child, ok := parent[key].(map[string]any)
	if !ok {
		t.Fatalf("%q is no object", key)
	}
	return child
}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	var out map[string]any
	must.Do(t, json.Unmarshal([]byte(text(t, path)), &out), path)
	return out
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	must.Do(t, encoder.Encode(v))
	return out.Bytes()
}
