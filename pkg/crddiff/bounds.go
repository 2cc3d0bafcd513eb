package crddiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// bound is a limit of a number, a length or a count. At an open one, the value itself is not allowed. nil: no limit.
type bound struct {
	at   float64
	open bool
}

// limitOf is a limit as the values of a type meet it: of integers, more than 1 is at least 2.
func limitOf(f *float64, exclusive, integers, upper bool) *bound {
	switch {
	case f == nil:
		return nil
	case !integers:
		return &bound{*f, exclusive}
	case upper && exclusive:
		return &bound{at: math.Ceil(*f) - 1}
	case upper:
		return &bound{at: math.Floor(*f)}
	case exclusive:
		return &bound{at: math.Floor(*f) + 1}
	}
	return &bound{at: math.Ceil(*f)}
}

// isNarrower reports whether some value is within the first limit and not within the second one.
func isNarrower(before, after *bound, upper bool) bool {
	switch {
	case after == nil:
		return false
	case before == nil:
		return true
	case before.at == after.at:
		return after.open && !before.open
	}
	return (before.at < after.at) != upper
}

// bounds compares what a value itself may be. integers: it is a whole number.
func (c *comparison) bounds(path string, from, to *structuralschema.ValueValidation, integers bool) {
	for _, b := range []struct {
		name            string
		before, after   *float64
		wasOpen, isOpen bool
		integers, upper bool
	}{
		{"Minimum", from.Minimum, to.Minimum, from.ExclusiveMinimum, to.ExclusiveMinimum, integers, false},
		{"Maximum", from.Maximum, to.Maximum, from.ExclusiveMaximum, to.ExclusiveMaximum, integers, true},
	} {
		switch {
		case !isNarrower(limitOf(b.before, b.wasOpen, b.integers, b.upper),
			limitOf(b.after, b.isOpen, b.integers, b.upper), b.upper):
		case b.before != nil && *b.before == *b.after:
			c.narrowed(path, "exclusive%s was added", b.name)
		default:
			c.narrowed(path, "%s was %s and is %s", strings.ToLower(b.name), showBound(b.before), showBound(b.after))
		}
	}
	none := float64(0)
	for _, b := range []struct {
		name          string
		before, after *float64
		upper         bool
	}{
		{"minLength", cmp.Or(float(from.MinLength), &none), float(to.MinLength), false},
		{"maxLength", float(from.MaxLength), float(to.MaxLength), true},
		{"minItems", cmp.Or(float(from.MinItems), &none), float(to.MinItems), false},
		{"maxItems", float(from.MaxItems), float(to.MaxItems), true},
		{"minProperties", cmp.Or(float(from.MinProperties), &none), float(to.MinProperties), false},
		{"maxProperties", float(from.MaxProperties), float(to.MaxProperties), true},
	} {
		if isNarrower(limitOf(b.before, false, true, b.upper), limitOf(b.after, false, true, b.upper), b.upper) {
			c.narrowed(path, "%s was %s and is %s", b.name, showBound(b.before), showBound(b.after))
		}
	}
	c.forms(path, from, to, integers)
	c.enum(path, from.Enum, to.Enum)
	c.combined(path, from, to)
}

// forms compares the limits that have no order.
func (c *comparison) forms(path string, from, to *structuralschema.ValueValidation, integers bool) {
	if to.UniqueItems && !from.UniqueItems {
		c.narrowed(path, "uniqueItems was added")
	}
	all := from.MultipleOf
	if one := float64(1); all == nil && integers {
		all = &one
	}
	if to.MultipleOf != nil && !isMultiple(all, *to.MultipleOf) {
		c.narrowed(path, "multipleOf was %s and is %s", showBound(from.MultipleOf), showBound(to.MultipleOf))
	}
	if to.Pattern != from.Pattern && !matchesAll(to.Pattern) {
		c.narrowed(path, "the pattern was %s and is %q; whether it allows the same is not known",
			orNone(from.Pattern), to.Pattern)
	}
	if to.Format != "" && to.Format != from.Format && (from.Format != "int32" || to.Format != "int64") {
		c.narrowed(path, "the format was %s and is %q", orNone(from.Format), to.Format)
	}
}

// isMultiple reports whether a number, and so each of its multiples, is a multiple of another one.
func isMultiple(n *float64, of float64) bool {
	if n == nil {
		return false
	}
	quotient := *n / of
	return math.Abs(quotient-math.Round(quotient)) < 1e-9
}

// matchesAll reports whether a pattern surely matches every text: it matches the empty one, wherever that is.
func matchesAll(pattern string) bool {
	compiled, err := regexp.Compile(pattern)
	return err == nil && compiled.MatchString("") && !strings.ContainsAny(pattern, `^$\`)
}

func (c *comparison) enum(path string, from, to []structuralschema.JSON) {
	if len(to) == 0 {
		return
	}
	if len(from) == 0 {
		c.narrowed(path, "enum was added, with %s", showAll(to))
		return
	}
	removed := slices.DeleteFunc(slices.Clone(from), func(before structuralschema.JSON) bool {
		return slices.ContainsFunc(to, func(after structuralschema.JSON) bool {
			return show(before.Object) == show(after.Object)
		})
	})
	if len(removed) > 0 {
		c.narrowed(path, "enum has lost %s", showAll(removed))
	}
}

// combined compares what is made of several schemas. What an alternative allows is not compared with another one: one
// that is written otherwise counts as another.
func (c *comparison) combined(path string, from, to *structuralschema.ValueValidation) {
	lacks := func(list []structuralschema.NestedValueValidation) func(structuralschema.NestedValueValidation) bool {
		return func(v structuralschema.NestedValueValidation) bool {
			return !slices.ContainsFunc(list, func(other structuralschema.NestedValueValidation) bool {
				return reflect.DeepEqual(v, other)
			})
		}
	}
	// x-kubernetes-int-or-string is written with two types in anyOf, which say nothing more.
	alternatives := func(list []structuralschema.NestedValueValidation) []structuralschema.NestedValueValidation {
		return slices.DeleteFunc(
			slices.Clone(list),
			func(v structuralschema.NestedValueValidation) bool { return v.ForbiddenGenerics.Type != "" },
		)
	}
	before, after := alternatives(from.AnyOf), alternatives(to.AnyOf)
	changed := []string{}
	if slices.ContainsFunc(to.AllOf, lacks(from.AllOf)) {
		changed = append(changed, "allOf")
	}
	if len(after) > 0 && (len(before) == 0 || slices.ContainsFunc(before, lacks(after))) {
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
