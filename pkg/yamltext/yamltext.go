// Package yamltext writes YAML in the order and the style in which people write objects of Kubernetes and schemas: what
// identifies first, what is long last, what is short on one line. It also knows what kubectl reads for a scalar; it does not
// read documents.
package yamltext

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// leading are keys that stand before others, in this order, as people write them.
var leading = []string{"apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "group", "names", "scope",
	"served", "storage", "subresources", "additionalPrinterColumns", "type", "format", "description", "default", "required", "rule", "spec"}

// trailing are keys that stand after others, since they are long.
var trailing = []string{"versions", "schema", "openAPIV3Schema", "items", "additionalProperties", "properties", "status"}

// Of is a value (maps, lists and scalars, as JSON has them) as YAML in the order in which people write objects and schemas:
// what identifies first, what is long last, else by the alphabet. The schema of a scalar stays on one line. The error is about
// a value that YAML cannot hold.
func Of(value any) (string, error) {
	n, err := Node(value)
	if err != nil {
		return "", err
	}
	return Write(n)
}

// Write is a node as text, indented by two. The error is about a node that is no YAML, such as one of no kind.
func Write(n *yaml.Node) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	return out.String(), nil
}

// Node is a value as Of writes it, to be put into a document of somebody else's.
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

// IsShort tells maps that are read best on one line: the schema of a scalar, a printer column, the names of a kind.
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

// Indent puts a prefix before each line of a text that is not empty. The last line has an end then.
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
