package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// typeNames are the types of schemas as people call them.
var typeNames = map[string]string{"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean",
	"array": "a list", "object": "a map"}

func names(types []string) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = typeNames[t]
	}
	return strings.Join(list, " or ")
}

// typesOf are the types that a schema takes; nil if it takes any, or that is not known.
func typesOf(s *spec.Schema) []string {
	if s = plainSchema(s); s == nil {
		return nil
	}
	if either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); either || s.Format == "int-or-string" {
		return []string{"integer", "string"}
	}
	if len(s.Type) > 0 {
		return s.Type
	}
	var all []string
	for _, one := range append(s.OneOf[:len(s.OneOf):len(s.OneOf)], s.AnyOf...) {
		types := typesOf(&one)
		if types == nil {
			return nil
		}
		all = append(all, types...)
	}
	return all
}

// plainSchema is a schema without what a published one has around it to give it a description of its own.
func plainSchema(s *spec.Schema) *spec.Schema {
	for s != nil && len(s.AllOf) == 1 && len(s.Type) == 0 && len(s.Properties) == 0 && s.Items == nil {
		s = &s.AllOf[0]
	}
	return s
}

// overlap reports whether a value of one of the types can be of one of the others. A number may be whole.
func overlap(have, want []string) bool {
	return have == nil || want == nil || slices.ContainsFunc(have, func(t string) bool {
		return slices.Contains(want, t) || t == "integer" && slices.Contains(want, "number") || t == "number" && slices.Contains(want, "integer")
	})
}

func itemSchema(s *spec.Schema) *spec.Schema {
	if s == nil || s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func anyValue(s *spec.Schema) *spec.Schema {
	if s == nil || s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

// property is the schema of a field, and what is wrong with its name.
func (t *typeCheck) property(s *spec.Schema, name, at string) (*spec.Schema, *finding) {
	if s == nil {
		return nil, nil
	}
	if p, ok := s.Properties[name]; ok {
		return &p, nil
	}
	keeps, _ := s.Extensions.GetBool(preservesUnknown)
	embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource")
	switch {
	case s.AdditionalProperties != nil && (s.AdditionalProperties.Allows || s.AdditionalProperties.Schema != nil):
		return s.AdditionalProperties.Schema, nil
	case keeps || len(s.Properties) == 0 || len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 && len(s.Type) == 0:
		return nil, nil
	case embedded && slices.Contains(ofEveryKind[:3], name):
		return nil, nil
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	fix := "leave it out"
	if near := spelling.Closest(name, known); near != "" {
		fix = "did you mean " + near + "?"
	} else if len(known) <= 12 {
		fix = "it has " + strings.Join(known, ", ")
	}
	owner := t.kind.GVK.Kind
	if at != "" {
		owner = at
	}
	return nil, &finding{problem: fmt.Sprintf("%s has no field %s", owner, name), fix: fix}
}

// checkValue holds one value to its schema, without what is below it.
func (t *typeCheck) checkValue(s *render.Sketch, schema *spec.Schema, at string) *finding {
	want := typesOf(schema)
	if want == nil {
		return nil
	}
	switch s.Kind {
	case render.SketchScalar:
		return constant(s.Value, schema, want, at)
	case render.SketchText:
		if !overlap([]string{"string"}, want) {
			return &finding{problem: fmt.Sprintf("%s must be %s, and %s gives text", at, names(want), oneLine(s.Holes[0].Text)),
				fix: "let the hole be the whole value, as in `{{ … | int }}`"}
		}
	case render.SketchMap:
		if !overlap([]string{"object"}, want) {
			return misfit(at, want, "not a map")
		}
	case render.SketchList:
		if !overlap([]string{"array"}, want) {
			return misfit(at, want, "not a list")
		}
	default:
		for _, h := range s.Holes {
			if found := t.hole(h, schema, at); found != nil {
				return found
			}
		}
	}
	return nil
}

func misfit(at string, want []string, not string) *finding {
	fix := "write " + names(want)
	switch {
	case slices.Contains(want, "array"):
		fix = "begin each item with `- `"
	case slices.Contains(want, "object"):
		fix = "write KEY: VALUE below it"
	}
	return &finding{problem: fmt.Sprintf("%s must be %s, %s", at, names(want), not), fix: fix}
}

// constant judges a scalar of the author's own. null is as good as left out.
func constant(v any, schema *spec.Schema, want []string, at string) *finding {
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
		if limits := overflows(v, schema); limits != "" {
			return &finding{problem: fmt.Sprintf("%s holds %s, not %s", at, limits, shown), fix: "give a number that it holds"}
		}
		return enumerated(v, schema, at)
	}
	found := misfit(at, want, "not "+shown)
	text, isText := v.(string)
	switch {
	case slices.Contains(want, "string"):
		found.fix = "quote it"
	case isText && json.Valid([]byte(text)) && strings.Trim(text, "{}[]") == text && text != "null":
		found.fix = "write it without quotes"
	}
	return found
}

// enumerated holds a constant to the values that a schema lists. The empty string is as good as left out in most kinds.
func enumerated(v any, schema *spec.Schema, at string) *finding {
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
	return &finding{problem: fmt.Sprintf("%s cannot be %q", at, fmt.Sprint(v)), fix: fix}
}

// hole judges what a hole can give. One of which nothing is known is good.
func (t *typeCheck) hole(h render.Hole, schema *spec.Schema, at string) *finding {
	s := t.shapes[[2]int{h.Line, h.Column}]
	if h.String {
		s = shape{typed: "string"}
	}
	alternatives := []shape{s}
	if s.either != nil {
		alternatives = s.either
	}
	var found *finding
	wrong := 0
	for _, one := range alternatives {
		if where, have, want := one.misfits(schema, 0); want != nil {
			wrong++
			found = &finding{problem: fmt.Sprintf("%s must be %s, and %s is %s", at+where, names(want), oneLine(h.Text), names(have)), fix: convert(want)}
			if where != "" {
				found.problem = fmt.Sprintf("%s must be %s, and %s has %s there", at+where, names(want), oneLine(h.Text), names(have))
				found.fix = "declare the same type in the CustomResourceDefinition of the upstream"
			}
		}
	}
	if found != nil {
		found.unsure = wrong < len(alternatives)
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

// misfits finds where a value of the shape does not fit a schema; want is nil where it fits or nothing is known.
func (s shape) misfits(schema *spec.Schema, depth int) (where string, have, want []string) {
	schema = plainSchema(schema)
	if schema == nil || depth > 20 || s.either != nil {
		return "", nil, nil
	}
	have, want = typesOf(s.schema), typesOf(schema)
	if s.typed != "" {
		have = []string{s.typed}
	}
	if !overlap(have, want) {
		return "", have, want
	}
	if s.schema == nil {
		return "", nil, nil
	}
	mine := plainSchema(s.schema)
	if item := itemSchema(mine); item != nil {
		where, have, want = shape{schema: item}.misfits(itemSchema(schema), depth+1)
		return "[]" + where, have, want
	}
	if values := anyValue(mine); values != nil && anyValue(schema) != nil {
		where, have, want = shape{schema: values}.misfits(anyValue(schema), depth+1)
		return "[*]" + where, have, want
	}
	for _, name := range slices.Sorted(maps.Keys(mine.Properties)) {
		property := mine.Properties[name]
		other, ok := schema.Properties[name]
		if !ok && anyValue(schema) != nil {
			other = *anyValue(schema)
		}
		if where, have, want = (shape{schema: &property}).misfits(&other, depth+1); want != nil {
			return pathStep(name) + where, have, want
		}
	}
	return "", nil, nil
}

// oneLine keeps a hole that spans lines on one.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
