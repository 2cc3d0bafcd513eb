package yamltext_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// TestOf: a value in any order and style gives one text, and the text is read back as the same value.
func TestOf(t *testing.T) {
	for _, test := range []struct{ in, want, reason string }{
		{`{"status": {}, "metadata": {"labels": {}, "name": "a"}, "kind": "K", "apiVersion": "v1", "zone": 1}`,
			"apiVersion: v1\nkind: K\nmetadata:\n  name: a\n  labels: {}\nzone: 1\nstatus: {}\n", "what identifies stands first, the status last"},
		{`{"properties": {"a": {"type": "string", "maxLength": 3}}, "type": "object", "required": ["a", "b"]}`,
			"type: object\nrequired: [a, b]\nproperties:\n  a: {type: string, maxLength: 3}\n",
			"the schema of a scalar is one line, so is a list of scalars"},
		{`{"items": [{"b": 1, "a": [1]}, {"c": "x\ny"}]}`, "items:\n  - a: [1]\n    b: 1\n  - c: |-\n      x\n      y\n",
			"else by the alphabet; text of several lines is a block"},
		{`{"yes": "no", "1": "2", "x": "a: b", "n": null}`, "\"1\": \"2\"\n\"n\": null\nx: 'a: b'\n\"yes\": \"no\"\n",
			"text that reads as something else is quoted"},
	} {
		var value any
		must.Do(t, yaml.Unmarshal([]byte(test.in), &value))
		text := must.Get(yamltext.Of(value)).In(t)
		must.Same(t, test.want, text, test.reason)
		var back any
		must.Do(t, yaml.Unmarshal([]byte(text), &back))
		must.Same(t, value, back, test.reason, "it reads as another value")
	}
}
