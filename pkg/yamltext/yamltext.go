// Package yamltext writes YAML in the usual order and style of Kubernetes objects and schemas: identifying keys first,
// long ones last, short maps on one line. It also resolves scalars as kubectl does; it does not read documents.
package yamltext

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// leading are keys that come before others, in this order.
var leading = []string{"apiVersion", "kind", "metadata", "name", "namespace", "labels",
	"annotations", "group", "names", "scope",
	"served", "storage", "subresources", "additionalPrinterColumns", "type", "format", "description",
	"default", "required", "rule", "spec"}

// trailing are keys that come after others, because their values are long.
var trailing = []string{"versions", "schema", "openAPIV3Schema", "items",
	"additionalProperties", "properties", "status"}

// Of returns a value (JSON types) as YAML: identifying keys first, long ones last, the rest in alphabetical order. The
// schema of a scalar is on one line. It returns an error for a value that YAML cannot represent.
func Of(value any) (string, error) {
	n, err := Node(value)
	if err != nil {
		return "", err
	}
	return Write(n)
}

// Write returns a node as text, indented by two spaces. It returns an error for an invalid node, such as one without a
// kind.
func Write(n *yaml.Node) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	return out.String(), nil
}

// Node returns a value as the node that Of writes, for use in another document.
func Node(value any) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, key := range Keys(v) {
			child, err := Node(v[key])
			if err != nil {
				return nil, err
			}
			name := &yaml.Node{}
			if err := name.Encode(key); err != nil {
				return nil, fmt.Errorf("writing YAML: %w", err)
			}
			n.Content = append(n.Content, name, child)
		}
		if IsShort(v) {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	case []any:
		n.Kind = yaml.SequenceNode
		flow := true
		for _, item := range v {
			child, err := Node(item)
			if err != nil {
				return nil, err
			}
			flow = flow && child.Kind == yaml.ScalarNode
			n.Content = append(n.Content, child)
		}
		if flow {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	}
	if err := n.Encode(value); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return n, nil
}

// IsShort reports whether a map is easier to read on one line: the schema of a scalar, a printer column, the names of a
// kind.
func IsShort(m map[string]any) bool {
	_, schema := m["type"].(string)
	_, open := m["x-kubernetes-preserve-unknown-fields"]
	_, either := m["x-kubernetes-int-or-string"]
	_, names := m["plural"]
	_, subresources := m["status"]
	for _, value := range m {
		switch v := value.(type) {
		case map[string]any:
			return len(m) == 1 && (subresources && len(v) == 0 || m["additionalProperties"] != nil && IsShort(v))
		case []any:
			return false
		case string:
			if strings.Contains(v, "\n") || len(v) > 70 {
				return false
			}
		}
	}
	return schema || open || either || names
}

// Keys returns the keys of a map in the order in which Of writes them.
func Keys(m map[string]any) []string {
	rank := func(key string) int {
		if i := slices.Index(leading, key); i >= 0 {
			return i - len(leading)
		}
		return slices.Index(trailing, key) + 1
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return keys
}

// Indent adds a prefix to each line that is not empty. The result ends with a line break.
func Indent(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if strings.TrimSpace(line) != "" {
			out.WriteString(prefix)
		}
		out.WriteString(line)
	}
	return out.String()
}
