package document

import (
	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// scalarValue returns what kubectl reads for a scalar, except that integers beyond 2^53 stay what they are. The error
// is about a value that JSON cannot hold, such as .nan.
func scalarValue(n *yaml.Node) (any, error) {
	v, err := yamltext.Resolve(n)
	if err != nil {
		return nil, err
	}
	return yamltext.JSON(v)
}

// keyText returns the text that kubectl makes of a scalar key: "1" of 1, "true" of on. It returns false for what cannot
// be a key.
func keyText(n *yaml.Node) (string, bool) {
	v, err := yamltext.Resolve(n)
	if err != nil {
		return "", false
	}
	return yamltext.KeyText(v)
}
