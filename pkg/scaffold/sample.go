package scaffold

import (
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// sampleOf is a spec that has what the definition requires besides the holes' values. guessed are fields whose value
// had to be made up.
func sampleOf(s *spec.Schema, have map[string]any, at string) (guessed []string) {
	if s == nil {
		return nil
	}
	for _, name := range s.Required {
		property := s.Properties[name]
		if _, ok := have[name]; ok || property.Default != nil {
			continue
		}
		have[name] = madeUp(&property)
		if _, isMap := have[name].(map[string]any); !isMap {
			guessed = append(guessed, at+"."+name)
		}
	}
	for name := range s.Properties {
		property := s.Properties[name]
		if below, ok := have[name].(map[string]any); ok {
			guessed = append(guessed, sampleOf(&property, below, at+"."+name)...)
		}
	}
	slices.Sort(guessed)
	return guessed
}

// madeUp is some value of a schema.
func madeUp(s *spec.Schema) any {
	switch {
	case s.Example != nil:
		return s.Example
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.Type) == 0:
		return "x"
	}
	switch s.Type[0] {
	case "object":
		return map[string]any{}
	case "array":
		return []any{}
	case "boolean":
		return false
	case "integer", "number":
		if s.Minimum != nil {
			return int64(*s.Minimum)
		}
		return int64(1)
	}
	return "x"
}
