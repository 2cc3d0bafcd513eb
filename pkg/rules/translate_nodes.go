package rules

import (
	"maps"
	"slices"
)

// What the plain JSON of a value has in common with the value as its schema has it.

// field is the schema of a field; nil if there is none.
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

// element is the schema of what an index gives.
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

// nullable tells that the value may be null.
func (n *node) nullable() bool { return !n.dyn && n.Schema.Schema != nil && n.Schema.Schema.Nullable }

// converts tells a scalar that its schema makes of another type than JSON has it.
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

// differs tells that the value as a whole is not what its JSON is.
func (n *node) differs() bool { return n.difference() != "" }

// difference says in which way; "" in none.
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
