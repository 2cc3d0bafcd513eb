package rules

import (
	"maps"
	"slices"
)

// The methods below compare a value as plain JSON with the value in the type of its schema.

// field returns the schema of a field; nil if there is none.
func (n *node) field(name string) *node {
	switch {
	case n == nil:
		return nil
	case n.dyn:
		return unknown
	case n.properties != nil:
		return n.properties[name]
	}
	return n.values
}

// element returns the schema of the result of an index.
func (n *node) element() *node {
	switch {
	case n == nil:
		return nil
	case n.dyn:
		return unknown
	case n.items != nil:
		return n.items
	}
	return n.values
}

// nullable reports whether the value may be null.
func (n *node) nullable() bool { return !n.dyn && n.Schema.Schema != nil && n.Schema.Schema.Nullable }

// converts reports whether the schema converts a scalar to a type that JSON does not have.
func (n *node) converts() bool {
	if n.dyn || n.items != nil || n.values != nil || n.properties != nil || n.IsXIntOrString() {
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

// differs reports whether the value as a whole is not the same as its JSON.
func (n *node) differs() bool { return n.difference() != "" }

// difference says how the value differs from its JSON; "" if it does not.
func (n *node) difference() string {
	switch {
	case n.dyn:
		return ""
	case n.converts():
		return "a time, duration, fraction or bytes"
	case n.items != nil:
		if kind := n.XListType(); kind == "set" || kind == "map" {
			return "a list whose order does not matter"
		}
		return n.items.difference()
	case n.values != nil:
		return n.values.difference()
	}
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		property := n.properties[name]
		if property.nullable() {
			return "a null that counts as absent"
		}
		if d := property.difference(); d != "" {
			return d
		}
	}
	return ""
}
