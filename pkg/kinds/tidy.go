package kinds

import (
	"reflect"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// listMapKeys is an extension whose type is []string in a schema made from a structural one, and []any in one read as
// JSON. Readers of kube-openapi's schemas support only the second.
const listMapKeys = "x-kubernetes-list-map-keys"

// unread are extensions that nobody uses.
var unread = []string{"x-kubernetes-group-version-kind", "x-kubernetes-patch-strategy",
	"x-kubernetes-patch-merge-key", "x-kubernetes-unions"}

// TidyBuiltin is tidy for the schema of a built-in kind, where an empty default means nothing: the Go types have one
// for every field that is not a pointer, even if an API server refuses it.
func TidyBuiltin(s *spec.Schema) *spec.Schema {
	walk(Tidy(s), func(s *spec.Schema) {
		if s.Default == nil || reflect.ValueOf(s.Default).Kind() == reflect.Map || reflect.ValueOf(s.Default).IsZero() {
			s.Default = nil
		}
	})
	return s
}

// Tidy changes a schema in place and returns it: it removes descriptions and examples, which are most of a schema's
// size, and converts extensions to the types that they have in JSON.
func Tidy(s *spec.Schema) *spec.Schema {
	walk(s, func(s *spec.Schema) {
		s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
		for _, name := range unread {
			delete(s.Extensions, name)
		}
		if len(s.Extensions) == 0 {
			s.Extensions = nil
		}
		if keys, ok := s.Extensions[listMapKeys].([]string); ok {
			list := make([]any, len(keys))
			for i, key := range keys {
				list[i] = key
			}
			s.Extensions[listMapKeys] = list
		}
	})
	return s
}

// walk visits a schema, which may be nil, and every schema in it; visit may change them.
func walk(s *spec.Schema, visit func(*spec.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	for name, property := range s.Properties {
		walk(&property, visit)
		s.Properties[name] = property
	}
	if s.AdditionalProperties != nil {
		walk(s.AdditionalProperties.Schema, visit)
	}
	if s.Items != nil {
		walk(s.Items.Schema, visit)
	}
	walk(s.Not, visit)
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			walk(&list[i], visit)
		}
	}
}
