package schema

import (
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Property returns the node of a property by its escaped name; Unknown if there is none.
func (n *Node) Property(escaped string) *Node {
	name, ok := Unescape(escaped)
	if property := n.Fields[name]; ok && property != nil {
		return property
	}
	return Unknown
}

// EntryOf returns the node of an entry of a map whose values have the given node.
func EntryOf(values *Node) *Node {
	key := &Node{Schema: openapi.Schema{Schema: spec.StringProperty()}}
	object := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"key": *key.Schema.Schema, "value": *schemaOfNode(values)}}}
	n := &Node{Schema: openapi.Schema{Schema: object}, Fields: map[string]*Node{"key": key, "value": values}}
	n.seal()
	return n
}

// schemaOfNode returns the schema of a node; for an unknown one it allows anything.
func schemaOfNode(n *Node) *spec.Schema {
	if n == Unknown || n.Schema.Schema == nil {
		return &spec.Schema{}
	}
	return n.Schema.Schema
}

// MapOf returns the node of a map whose values have the given node.
func MapOf(values *Node) *Node {
	return &Node{Schema: openapi.Schema{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}},
		Values: values,
		mixed:  values.mixed}
}

// ListOf returns the node of a plain list of items, without a schema.
func ListOf(item *Node) *Node { return &Node{Schema: Unknown.Schema, Item: item} }

// ObjectOf returns the node of an object with fields.
func ObjectOf(fields map[string]*Node) *Node {
	n := &Node{Schema: openapi.Schema{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}},
		Fields: fields}
	n.seal()
	return n
}
