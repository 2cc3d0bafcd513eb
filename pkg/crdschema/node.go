package crdschema

import (
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Node is a JSON schema, or a part of one, as in a CustomResourceDefinition.
type Node = map[string]any

// Object returns the schema of an object with these properties.
func Object(properties Node) Node { return Node{"type": "object", "properties": properties} }

// anything returns a schema that stores any value.
func anything() Node { return Node{"x-kubernetes-preserve-unknown-fields": true} }

// Of returns a schema as a Node. If s is nil or cannot be converted, the schema stores any value.
func Of(s *spec.Schema) Node {
	n := Node{}
	text, err := json.Marshal(s)
	if s == nil || err != nil || utiljson.Unmarshal(text, &n) != nil {
		return anything()
	}
	return n
}

// Place sets a schema at a path below root, and creates the objects on the way.
func Place(root Node, path fieldpath.Path, s Node) {
	for i, step := range path {
		properties := root["properties"].(Node)
		if i == len(path)-1 {
			properties[step.Field] = s
			return
		}
		next, ok := properties[step.Field].(Node)
		if !ok {
			next = Object(Node{})
			properties[step.Field] = next
		}
		root = next
	}
}

// Merge adds the fields of from to into, recursively. into shares no map with from afterwards.
func Merge(into, from Node) {
	for key, value := range from {
		have, both := into[key].(Node)
		more, ok := value.(Node)
		if both && ok {
			Merge(have, more)
			continue
		}
		if ok {
			fresh := Node{}
			Merge(fresh, more)
			value = fresh
		}
		into[key] = value
	}
}

// sample returns a value that has every field of a schema.
func sample(s Node) any {
	switch s["type"] {
	case "object":
		value := map[string]any{}
		properties, _ := s["properties"].(Node)
		for name, property := range properties {
			value[name] = sample(property.(Node))
		}
		return value
	case "array":
		items, _ := s["items"].(Node)
		return []any{sample(items)}
	}
	return "-"
}

// pick returns the part of a schema that leads to a path, and everything below it. Items of lists have no step in the
// path.
func pick(s Node, path fieldpath.Path) Node {
	if len(path) == 0 {
		return s
	}
	if items, ok := s["items"].(Node); ok {
		return Node{"items": pick(items, path)}
	}
	name := path[0].Field
	return Node{"properties": Node{name: pick(s["properties"].(Node)[name].(Node), path[1:])}}
}
