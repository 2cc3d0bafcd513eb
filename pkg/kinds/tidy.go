package kinds

import (
	"reflect"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// listMapKeys is the extension whose value differs in type between a schema made from a structural one ([]string)
// and one read as JSON ([]any). Readers of kube-openapi's schemas understand the second alone.
const listMapKeys = "x-kubernetes-list-map-keys"

// unread are extensions that nothing reads.
var unread = []string{"x-kubernetes-group-version-kind", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-unions"}

// tidyBuiltin is tidy for the schema of a built-in kind, where a default that is empty says nothing: the Go types have
// it for every field that is not a pointer, whether an API server takes it or not.
func tidyBuiltin(s *spec.Schema) *spec.Schema {
	walk(tidy(s), func(s *spec.Schema) {
		if s.Default == nil || reflect.ValueOf(s.Default).Kind() == reflect.Map || reflect.ValueOf(s.Default).IsZero() {
			s.Default = nil
		}
	})
	return s
}

// tidy changes a schema in place and returns it: descriptions and examples are dropped, since they are most of a
// schema's size and nothing reads them, and extensions take the types they have in JSON.
func tidy(s *spec.Schema) *spec.Schema {
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
