package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// statusField holds a field of status.fields to the upstream's schema: its path has to be declared, or nothing is stored,
// and its value has to be of the declared type.
func (c *compiler) statusField(i int, path fieldpath.Path, program *rules.Program) {
	s, up := c.p.Upstream.Schema, c.p.Upstream
	if s == nil || len(path) == 0 {
		return
	}
	if _, declared := s.Properties[path[0].Field]; !declared {
		return // the kind stores no status at all, which is reported once
	}
	for k, step := range path {
		known, next := s, (*spec.Schema)(nil)
		if step.Kind == fieldpath.FieldStep {
			next, _ = (&typeCheck{kind: up}).property(known, step.Field, "")
		}
		if next == nil && len(known.Properties) > 0 && !storesAnything(known) {
			fix := "add it to the CustomResourceDefinition: corollary generate crd-status prints the lines"
			if near := spelling.Closest(step.Field, slices.Sorted(maps.Keys(known.Properties))); near != "" {
				fix = "did you mean " + near + "?"
			}
			c.warn(*c.file.Errorf(fmt.Sprintf("status.fields[%d].path", i), fix, "the schema of %s has no %s, which is not stored", up.GVK.Kind, path[:k+1]))
			return
		}
		if s = plainSchema(next); s == nil {
			return
		}
	}
	if program == nil || program.Result() == nil {
		return
	}
	if where, have, want := (shape{schema: program.Result()}).misfits(s, 0); want != nil {
		at := fmt.Sprintf("status.fields[%d].value", i)
		c.p.Refusals = append(c.p.Refusals, *c.file.Errorf(at, "convert it, or declare another type in the CustomResourceDefinition",
			"it gives %s, and the schema requires %s in %s%s", names(have), names(want), path, where))
	}
}

func storesAnything(s *spec.Schema) bool {
	keeps, _ := s.Extensions.GetBool(preservesUnknown)
	return keeps || s.AdditionalProperties != nil
}
