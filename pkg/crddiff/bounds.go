package crddiff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// bound is a limit of a number, a length or a count.
type bound struct {
	name    string
	was, is *float64
	upper   bool
}

// isNarrower tells whether some value is not within the bound any more.
func (b bound) isNarrower() bool {
	switch {
	case b.is == nil:
		return false
	case b.was == nil:
		return true
	case b.upper:
		return *b.is < *b.was
	}
	return *b.is > *b.was
}

// bounds compares what a value itself may be.
func (c *comparison) bounds(path string, from, to *structuralschema.ValueValidation) {
	if to == nil {
		return
	}
	if from == nil {
		from = &structuralschema.ValueValidation{}
	}
	for _, b := range []bound{
		{"minimum", from.Minimum, to.Minimum, false},
		{"maximum", from.Maximum, to.Maximum, true},
		{"minLength", float(from.MinLength), float(to.MinLength), false},
		{"maxLength", float(from.MaxLength), float(to.MaxLength), true},
		{"minItems", float(from.MinItems), float(to.MinItems), false},
		{"maxItems", float(from.MaxItems), float(to.MaxItems), true},
		{"minProperties", float(from.MinProperties), float(to.MinProperties), false},
		{"maxProperties", float(from.MaxProperties), float(to.MaxProperties), true},
	} {
		if b.isNarrower() {
			c.narrowed(path, "%s was %s and is %s", b.name, showBound(b.was), showBound(b.is))
		}
	}
	c.forms(path, from, to)
	c.enum(path, from.Enum, to.Enum)
	c.combined(path, from, to)
}

// forms compares the limits that have no order.
func (c *comparison) forms(path string, from, to *structuralschema.ValueValidation) {
	for _, is := range []struct {
		name     string
		was, now bool
	}{
		{"exclusiveMinimum", from.ExclusiveMinimum, to.ExclusiveMinimum && to.Minimum != nil},
		{"exclusiveMaximum", from.ExclusiveMaximum, to.ExclusiveMaximum && to.Maximum != nil},
		{"uniqueItems", from.UniqueItems, to.UniqueItems},
	} {
		if is.now && !is.was {
			c.narrowed(path, "%s was added", is.name)
		}
	}
	if to.MultipleOf != nil && !reflect.DeepEqual(from.MultipleOf, to.MultipleOf) {
		c.narrowed(path, "multipleOf was %s and is %s", showBound(from.MultipleOf), showBound(to.MultipleOf))
	}
	if to.Pattern != "" && to.Pattern != from.Pattern {
		c.narrowed(path, "the pattern was %s and is %q; whether it allows the same is not known", orNone(from.Pattern), to.Pattern)
	}
	if to.Format != "" && to.Format != from.Format && (from.Format != "int32" || to.Format != "int64") {
		c.narrowed(path, "the format was %s and is %q", orNone(from.Format), to.Format)
	}
}

func (c *comparison) enum(path string, from, to []structuralschema.JSON) {
	if len(to) == 0 {
		return
	}
	if len(from) == 0 {
		c.narrowed(path, "enum was added, with %s", showAll(to))
		return
	}
	gone := slices.DeleteFunc(slices.Clone(from), func(was structuralschema.JSON) bool {
		return slices.ContainsFunc(to, func(is structuralschema.JSON) bool { return reflect.DeepEqual(was, is) })
	})
	if len(gone) > 0 {
		c.narrowed(path, "enum has lost %s", showAll(gone))
	}
}

// combined compares what is made of several schemas. What an alternative allows is not compared with another one: one that is
// written otherwise counts as another.
func (c *comparison) combined(path string, from, to *structuralschema.ValueValidation) {
	lacks := func(list []structuralschema.NestedValueValidation) func(structuralschema.NestedValueValidation) bool {
		return func(v structuralschema.NestedValueValidation) bool {
			return !slices.ContainsFunc(list, func(other structuralschema.NestedValueValidation) bool { return reflect.DeepEqual(v, other) })
		}
	}
	// x-kubernetes-int-or-string is written with two types in anyOf, which say nothing more.
	alternatives := func(list []structuralschema.NestedValueValidation) []structuralschema.NestedValueValidation {
		return slices.DeleteFunc(
			slices.Clone(list),
			func(v structuralschema.NestedValueValidation) bool { return v.ForbiddenGenerics.Type != "" },
		)
	}
	was, is := alternatives(from.AnyOf), alternatives(to.AnyOf)
	changed := []string{}
	if slices.ContainsFunc(to.AllOf, lacks(from.AllOf)) {
		changed = append(changed, "allOf")
	}
	if len(is) > 0 && (len(was) == 0 || slices.ContainsFunc(was, lacks(is))) {
		changed = append(changed, "anyOf")
	}
	if len(to.OneOf) > 0 && !reflect.DeepEqual(from.OneOf, to.OneOf) {
		changed = append(changed, "oneOf")
	}
	if to.Not != nil && !reflect.DeepEqual(from.Not, to.Not) {
		changed = append(changed, "not")
	}
	if len(changed) > 0 {
		c.add(
			path,
			Breaking,
			fixKeep,
			"%s changed: objects that do not pass are refused; whether it allows the same is not known",
			strings.Join(changed, ", "),
		)
	}
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func showBound(f *float64) string {
	if f == nil {
		return "not set"
	}
	return show(*f)
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return fmt.Sprintf("%q", s)
}

func showAll(values []structuralschema.JSON) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = show(v.Object)
	}
	return strings.Join(texts, ", ")
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
