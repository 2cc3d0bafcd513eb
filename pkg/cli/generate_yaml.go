package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// leading are keys that stand before others, in this order, as people write them.
var leading = []string{"apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "group", "names", "scope",
	"served", "storage", "subresources", "additionalPrinterColumns", "type", "format", "description", "default", "required", "spec"}

// trailing are keys that stand after others, since they are long.
var trailing = []string{"versions", "schema", "openAPIV3Schema", "items", "additionalProperties", "properties", "status"}

// readable is a value as YAML in the order in which people write objects and schemas: what identifies first, what is long
// last, else by the alphabet. The schema of a scalar stays on one line.
func readable(value any) (string, error) {
	n, err := yamlNode(value)
	if err != nil {
		return "", err
	}
	return yamlText(n)
}

func yamlText(n *yaml.Node) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	return out.String(), nil
}

func yamlNode(value any) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, key := range inOrder(v) {
			child, err := yamlNode(v[key])
			if err != nil {
				return nil, err
			}
			name := &yaml.Node{}
			if err := name.Encode(key); err != nil {
				return nil, fmt.Errorf("writing YAML: %w", err)
			}
			n.Content = append(n.Content, name, child)
		}
		if isShort(v) {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	case []any:
		n.Kind = yaml.SequenceNode
		flow := true
		for _, item := range v {
			child, err := yamlNode(item)
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

// isShort tells maps that are read best on one line: the schema of a scalar, a printer column, the names of a kind.
func isShort(m map[string]any) bool {
	_, schema := m["type"].(string)
	_, open := m["x-kubernetes-preserve-unknown-fields"]
	_, either := m["x-kubernetes-int-or-string"]
	_, names := m["plural"]
	_, subresources := m["status"]
	for _, value := range m {
		switch v := value.(type) {
		case map[string]any:
			return len(m) == 1 && (subresources && len(v) == 0 || m["additionalProperties"] != nil && isShort(v))
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

// inOrder returns the keys of a map as readable has them.
func inOrder(m map[string]any) []string {
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
