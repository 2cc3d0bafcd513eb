package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
	"sigs.k8s.io/yaml/kyaml"

	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// The formats of -o. Text is what a command prints for people, by a function of its own.
const (
	Text  = "text"
	JSON  = "json"
	YAML  = "yaml"
	KYAML = "kyaml"
)

// Output is the flag -o and prints in the format that it names.
type Output struct{ Choice }

// Bind adds the flag; the first format is the default.
func (o *Output) Bind(cmd *cobra.Command, usage string, formats ...string) {
	o.Words = formats
	BindChoice(cmd, &o.Choice, "output", "o", usage)
}

// Print writes a value as JSON, YAML or KYAML, or by text, which writes what people read.
func (o *Output) Print(w io.Writer, value any, text func(io.Writer) error) error {
	if o.Value == Text {
		return text(w)
	}
	var out bytes.Buffer
	if err := encode(&out, o.Value, value); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Documents writes objects: as YAML one after the other, as JSON one object, or a List where there is not exactly one.
// Keys are sorted.
func (o *Output) Documents(w io.Writer, documents []map[string]any) error {
	var out bytes.Buffer
	var err error
	switch o.Value {
	case JSON:
		err = encode(&out, JSON, listOf(documents))
	default:
		for i, d := range documents {
			if i > 0 && o.Value != KYAML { // which begins each document itself
				out.WriteString("---\n")
			}
			if err = encode(&out, o.Value, d); err != nil {
				break
			}
		}
	}
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing the documents: %w", err)
	}
	return nil
}

// listOf is one object, or a List.
func listOf(documents []map[string]any) map[string]any {
	if len(documents) == 1 {
		return documents[0]
	}
	items := make([]any, len(documents))
	for i, d := range documents {
		items[i] = d
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// encode writes a value. An object that a YAML parser would read back as something else is written as JSON, which is
// YAML too: the encoder leaves the key << bare, for one, and a reader would merge what a custom resource put below it
// into the map around it.
func encode(out *bytes.Buffer, format string, value any) error {
	var text []byte
	var err error
	switch format {
	case YAML:
		text, err = yaml.Marshal(value)
	case KYAML:
		text, err = (&kyaml.Encoder{}).Marshal(value)
	}
	if err != nil {
		return err
	}
	if document, isObject := value.(map[string]any); format != JSON && (!isObject || yamltext.ReadsBack(text, document)) {
		out.Write(text)
		return nil
	}
	if text, err = marshalJSON(value); format == KYAML {
		out.WriteString("---\n")
		text = bytes.ReplaceAll(text, []byte("\u0085"), []byte(`\u0085`)) // a line break to YAML parsers
	}
	out.Write(text)
	return err
}

func marshalJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	err := encoder.Encode(value)
	return out.Bytes(), err
}
