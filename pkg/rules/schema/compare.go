package schema

import (
	"maps"
	"slices"
)

// The methods below compare a value as plain JSON with the value in the type of its schema.

// Field returns the schema of a field; nil if there is none.
func (n *Node) Field(name string) *Node {
	switch {
	case n == nil:
		return nil
	case n.Dyn:
		return Unknown
	case n.Fields != nil:
		return n.Fields[name]
	}
	return n.Values
}

// Element returns the schema of the result of an index.
func (n *Node) Element() *Node {
	switch {
	case n == nil:
		return nil
	case n.Dyn:
		return Unknown
	case n.Item != nil:
		return n.Item
	}
	return n.Values
}

// Nullable reports whether the value may be null.
func (n *Node) Nullable() bool { return !n.Dyn && n.Schema.Schema != nil && n.Schema.Schema.Nullable }

// Converts reports whether the schema converts a scalar to a type that JSON does not have.
func (n *Node) Converts() bool {
	if n.Dyn || n.Item != nil || n.Values != nil || n.Fields != nil || n.IsXIntOrString() {
		return false
	}
	switch n.Type() {
	case "number":
		return true
	case "string":
		switch n.Format() {
		case "duration", "date", "date-time", "byte":
			return true
		}
	}
	return false
}

// Differs reports whether the value as a whole is not the same as its JSON.
func (n *Node) Differs() bool { return n.Difference() != "" }

// Difference says how the value differs from its JSON; "" if it does not.
func (n *Node) Difference() string {
	switch {
	case n.Dyn:
		return ""
	case n.Converts():
		return "a time, duration, fraction or bytes"
	case n.Item != nil:
		if kind := n.XListType(); kind == "set" || kind == "map" {
			return "a list whose order does not matter"
		}
		return n.Item.Difference()
	case n.Values != nil:
		return n.Values.Difference()
	}
	for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
		property := n.Fields[name]
		if property.Nullable() {
			return "a null that counts as absent"
		}
		if d := property.Difference(); d != "" {
			return d
		}
	}
	return ""
}
