package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// printDocuments writes documents as YAML, or as JSON: one object, or a List where there is not exactly one. Keys are
// sorted.
func printDocuments(w io.Writer, format string, documents []map[string]any) error {
	var out bytes.Buffer
	var err error
	if format == "json" {
		err = encodeJSON(&out, documents)
	} else {
		err = encodeYAML(&out, documents)
	}
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing the documents: %w", err)
	}
	return nil
}

// encodeYAML writes a document as kubectl does. One that a YAML parser would read back as something else is written as
// JSON, which is YAML too: the encoder leaves the key << bare, for one, and a reader would merge what a custom resource
// put below it into the map around it.
func encodeYAML(out *bytes.Buffer, documents []map[string]any) error {
	for i, d := range documents {
		if i > 0 {
			out.WriteString("---\n")
		}
		text, err := yaml.Marshal(d)
		if err != nil {
			return err
		}
		if yamltext.ReadsBack(text, d) {
			out.Write(text)
			continue
		}
		if err := encodeJSON(out, []map[string]any{d}); err != nil {
			return err
		}
	}
	return nil
}

func encodeJSON(out *bytes.Buffer, documents []map[string]any) error {
	var value any
	if len(documents) == 1 {
		value = documents[0]
	} else {
		items := make([]any, len(documents))
		for i, d := range documents {
			items[i] = d
		}
		value = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	return encoder.Encode(value)
}
