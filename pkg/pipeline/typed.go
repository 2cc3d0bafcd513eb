package pipeline

import (
	"fmt"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// warnOfTexts warns of holes that give text where the downstream's schema wants a number or a boolean: `80{{ .x }}` is a
// string, which the API server refuses, and nothing in the template shows it.
func (c *compiler) warnOfTexts(d *Downstream, path, file string, first int) {
	if d.template == nil || d.Kind.Schema == nil {
		return
	}
	for _, h := range d.template.Holes() {
		if !h.String || h.Key {
			continue
		}
		wanted := scalarType(schemaAt(d.Kind.Schema, h.Path))
		if wanted == "" {
			continue
		}
		c.p.Warnings = append(c.p.Warnings, config.Error{File: file, Line: first + h.Line - 1,
			Path:    path,
			Problem: fmt.Sprintf("%s wants %s, and %s gives text", h.Path, wanted, h.Text),
			Mend:    "let the hole be the whole value, as in `{{ … | int }}`"})
	}
}

// scalarType is the type of a field that text does not fit; "" for every other field.
func scalarType(s *spec.Schema) string {
	if s == nil {
		return ""
	}
	if either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); either || s.Format == "int-or-string" || len(s.OneOf) > 0 || len(s.AnyOf) > 0 {
		return ""
	}
	for _, t := range []string{"integer", "number", "boolean"} {
		if len(s.Type) == 1 && s.Type[0] == t {
			return map[string]string{"integer": "an integer", "number": "a number", "boolean": "a boolean"}[t]
		}
	}
	return ""
}

// schemaAt is the schema of the field at a hole's path, ".spec.ports[].port"; nil where it is not known.
func schemaAt(s *spec.Schema, path string) *spec.Schema {
	steps, err := fieldpath.Parse(strings.ReplaceAll(path, "[]", "[0]"))
	if err != nil {
		return nil
	}
	for _, step := range steps {
		if s == nil {
			return nil
		}
		for len(s.AllOf) == 1 && len(s.Properties) == 0 && s.Items == nil {
			s = &s.AllOf[0] // how a published schema says "that one, with a description of its own"
		}
		s = below(s, step)
	}
	return s
}

func below(s *spec.Schema, step fieldpath.Step) *spec.Schema {
	if step.Kind != fieldpath.FieldStep {
		if s.Items == nil {
			return nil
		}
		return s.Items.Schema
	}
	if p, ok := s.Properties[step.Field]; ok {
		return &p
	}
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}
