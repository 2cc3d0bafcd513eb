package check

import (
	"cmp"
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// StatusField holds a field of status.fields to the schema of its kind: the path has to be declared, or nothing is
// stored (Unsure), and the value, whose schema is result, has to be of the declared type. It returns nil if nothing is
// wrong, or known.
func StatusField(kind kinds.Kind, path fieldpath.Path, result *spec.Schema) *Finding {
	s := kind.Schema
	if s == nil || len(path) == 0 {
		return nil
	}
	if _, declared := s.Properties[path[0].Field]; !declared {
		return nil // the kind stores no status at all, which is reported once
	}
	for k, step := range path {
		known, next := s, (*spec.Schema)(nil)
		if step.Kind == fieldpath.FieldStep {
			next = property(known, step.Field)
		}
		if next == nil && len(known.Properties) > 0 && !storesAnything(known) {
			return &Finding{Problem: fmt.Sprintf("the schema of %s has no %s, which is not stored",
				kind.GVK.Kind, path[:k+1]), Unsure: true,
				Fix: cmp.Or(nearest(step.Field, known),
					"add it to the CustomResourceDefinition: corollary generate crd-status prints the lines")}
		}
		if s = kinds.PlainSchema(next); s == nil {
			return nil
		}
	}
	if result == nil {
		return nil
	}
	where, have, want := (shape{schema: result}).misfits(s, 0)
	if want == nil {
		return nil
	}
	return &Finding{Problem: fmt.Sprintf("it gives %s, and the schema requires %s in %s%s",
		names(have), names(want), path, where),
		Fix: "convert it, or declare another type in the CustomResourceDefinition"}
}
