package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// shape is what is known of a value before it is there. The zero shape is one of which nothing is known.
type shape struct {
	schema *spec.Schema
	scalar bool   // a key of a range: text, a number or a boolean
	typed  string // a constant, or what a function gives: the type as schemas call it
	// constant says that only the config's author decides it.
	constant bool
	// either, where it is set, are the shapes of which the value has one: that of a field, and its default.
	either []shape
	// at are the fields that lead to it from the upstream, lists taking no step; nil if it is not a part of that.
	at []string
}

// closed reports whether the value can be neither map nor list.
func (s shape) closed() bool {
	for _, one := range s.either {
		if !one.closed() {
			return false
		}
	}
	return s.scalar || s.typed != "" || len(s.either) > 0 || s.schema != nil && isScalar(s.schema)
}

// below is the shape of a field.
func (s shape) below(name string) shape {
	next := shape{constant: s.constant, schema: kinds.PlainSchema(property(s.schema, name))}
	if s.at != nil {
		next.at = append(slices.Clip(s.at), name)
	}
	return next
}

// item is the shape of what a range over the value gives.
func (s shape) item() shape {
	of := shape{at: s.at, constant: s.constant}
	switch {
	case s.schema == nil || len(s.schema.Properties) > 0:
	case s.schema.Items != nil:
		of.schema = kinds.PlainSchema(s.schema.Items.Schema)
	default:
		of.schema = kinds.PlainSchema(kinds.ValueSchema(s.schema))
	}
	return of
}

// scalarType is the schema type of a value that has always the same one; "unknown" of any other.
func (s shape) scalarType() string {
	if types := kinds.TypesOf(s.schema); len(types) == 1 && !s.schema.Nullable {
		return types[0]
	}
	return s.typed
}

// lacks says what to write instead of a field that an object of the shape never has; empty if it may have it.
func (s shape) lacks(name string) string {
	if s.schema != nil && isScalar(s.schema) {
		return describeScalar(s.schema) + " has no fields"
	}
	if s.schema != nil && len(s.schema.AllOf)+len(s.schema.AnyOf)+len(s.schema.OneOf) > 0 || mayHave(s.schema, name) {
		return ""
	}
	return cmp.Or(nearest(name, s.schema), "there are "+strings.Join(slices.Sorted(maps.Keys(s.schema.Properties)), ", "))
}

// misfits finds where a value of the shape does not fit a schema; want is nil where it fits or nothing is known.
func (s shape) misfits(schema *spec.Schema, depth int) (where string, have, want []string) {
	schema = kinds.PlainSchema(schema)
	if schema == nil || depth > 20 || s.either != nil {
		return "", nil, nil
	}
	have, want = kinds.TypesOf(s.schema), kinds.TypesOf(schema)
	if s.typed != "" {
		have = []string{s.typed}
	}
	if !overlap(have, want) {
		return "", have, want
	}
	mine := kinds.PlainSchema(s.schema)
	if item := kinds.ItemSchema(mine); item != nil {
		where, have, want = shape{schema: item}.misfits(kinds.ItemSchema(schema), depth+1)
		return "[]" + where, have, want
	}
	if values := kinds.ValueSchema(mine); values != nil && kinds.ValueSchema(schema) != nil {
		where, have, want = shape{schema: values}.misfits(kinds.ValueSchema(schema), depth+1)
		return "[*]" + where, have, want
	}
	for _, name := range slices.Sorted(maps.Keys(properties(mine))) {
		if where, have, want = (shape{schema: property(mine, name)}).misfits(property(schema, name), depth+1); want != nil {
			return step(name) + where, have, want
		}
	}
	return "", nil, nil
}
