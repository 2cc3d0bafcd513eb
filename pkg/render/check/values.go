package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// unknownField is what is wrong with the name of a field; nil if an object of the schema may have it. owner is the
// object.
func unknownField(s *spec.Schema, name, owner string) *Finding {
	if mayHave(s, name) || len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 && len(s.Type) == 0 {
		return nil
	}
	fix := "leave it out"
	if known := slices.Sorted(maps.Keys(s.Properties)); len(known) <= 12 {
		fix = "it has " + strings.Join(known, ", ")
	}
	return &Finding{Problem: fmt.Sprintf("%s has no field %s", owner, name), Fix: cmp.Or(nearest(name, s), fix)}
}

// checkValue holds one value to its schema, without what is below it.
func (d *Documents) checkValue(s *skeleton.Node, schema *spec.Schema, at string) *Finding {
	want := kinds.TypesOf(schema)
	if want == nil {
		return nil
	}
	switch {
	case isSplice(s) || s.Kind == skeleton.HoleNode:
		for _, h := range d.holes(s) {
			if found := d.hole(h, schema, at); found != nil {
				return found
			}
		}
	case s.Kind == skeleton.ConstNode:
		return constantMisfit(s.Value, schema, want, at)
	case s.Kind == skeleton.TextNode && !overlap([]string{"string"}, want):
		return &Finding{Problem: fmt.Sprintf("%s must be %s, and %s gives text", at, names(want),
			oneLine(d.holes(s)[0].Text)),
			Fix: "let the hole be the whole value, as in `{{ … | int }}`"}
	case s.Kind == skeleton.MapNode && !overlap([]string{"object"}, want):
		return misfit(at, want, "not a map")
	case s.Kind == skeleton.ListNode && !overlap([]string{"array"}, want):
		return misfit(at, want, "not a list")
	}
	return nil
}

func misfit(at string, want []string, not string) *Finding {
	fix := "write " + names(want)
	switch {
	case slices.Contains(want, "array"):
		fix = "begin each item with `- `"
	case slices.Contains(want, "object"):
		fix = "write KEY: VALUE below it"
	}
	return &Finding{Problem: fmt.Sprintf("%s must be %s, %s", at, names(want), not), Fix: fix}
}

// constantMisfit judges a scalar of the author's own. null is as good as left out.
func constantMisfit(v any, schema *spec.Schema, want []string, at string) *Finding {
	var have, shown string
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		have, shown = "string", fmt.Sprintf("the string %q", v)
	case bool:
		have, shown = "boolean", fmt.Sprintf("the boolean %t", v)
	case int64:
		have, shown = "integer", fmt.Sprintf("the integer %d", v)
	case float64:
		have, shown = "fraction", fmt.Sprintf("the number %v", v)
		if slices.Contains(want, "number") {
			return enumerated(v, schema, at)
		}
	}
	if overlap([]string{have}, want) {
		if limits := kinds.Overflows(v, schema); limits != "" {
			return &Finding{Problem: fmt.Sprintf("%s holds %s, not %s", at, limits, shown), Fix: "give a number that it holds"}
		}
		return enumerated(v, schema, at)
	}
	found := misfit(at, want, "not "+shown)
	text, isText := v.(string)
	switch {
	case slices.Contains(want, "string"):
		found.Fix = "quote it"
	case isText && json.Valid([]byte(text)) && strings.Trim(text, "{}[]") == text && text != "null":
		found.Fix = "write it without quotes"
	}
	return found
}

// enumerated holds a constant to the values that a schema lists. The empty string is as good as left out in most kinds.
func enumerated(v any, schema *spec.Schema, at string) *Finding {
	if len(schema.Enum) == 0 || v == "" {
		return nil
	}
	var known []string
	for _, e := range schema.Enum {
		if number, ok := e.(float64); ok && fmt.Sprint(v) == fmt.Sprint(number) || e == v {
			return nil
		}
		known = append(known, fmt.Sprint(e))
	}
	fix := "it is one of " + strings.Join(known, ", ")
	if near := spelling.Closest(fmt.Sprint(v), known); near != "" {
		fix = "did you mean " + near + "?"
	}
	return &Finding{Problem: fmt.Sprintf("%s cannot be %q", at, fmt.Sprint(v)), Fix: fix}
}

// hole judges what a hole can give. One of which nothing is known is good.
func (d *Documents) hole(h holes.Hole, schema *spec.Schema, at string) *Finding {
	s := d.walked.position(h).shape
	if h.String {
		s = shape{typed: "string"}
	}
	alternatives := []shape{s}
	if s.either != nil {
		alternatives = s.either
	}
	var found *Finding
	wrong := 0
	for _, one := range alternatives {
		if where, have, want := one.misfits(schema, 0); want != nil {
			wrong++
			found = &Finding{Problem: fmt.Sprintf("%s must be %s, and %s is %s", at+where, names(want), oneLine(h.Text),
				names(have)), Fix: convert(want)}
			if where != "" {
				found.Problem = fmt.Sprintf("%s must be %s, and %s has %s there", at+where, names(want),
					oneLine(h.Text), names(have))
				found.Fix = "declare the same type in the CustomResourceDefinition of the upstream"
			}
		}
	}
	if found != nil {
		found.Unsure = wrong < len(alternatives)
	}
	return found
}

func convert(want []string) string {
	for _, c := range []struct{ to, by string }{{"string", "quote"}, {"integer", "int"}, {"number", "float64"}} {
		if slices.Contains(want, c.to) {
			return fmt.Sprintf("write `{{ … | %s }}`, or declare %s in the upstream's schema", c.by, typeNames[c.to])
		}
	}
	return "let it read another field"
}

// oneLine keeps a hole that spans lines on one.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
