package kinds

import "k8s.io/kube-openapi/pkg/validation/spec"

// listMapKeys is the extension whose value differs in type between a schema made from a structural one ([]string)
// and one read as JSON ([]any). Readers of kube-openapi's schemas understand the second alone.
const listMapKeys = "x-kubernetes-list-map-keys"

// tidy changes a schema in place and returns it: descriptions and examples are dropped, since they are most of a
// schema's size and nothing reads them, and extensions take the types they have in JSON.
func tidy(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
	if keys, ok := s.Extensions[listMapKeys].([]string); ok {
		list := make([]any, len(keys))
		for i, key := range keys {
			list[i] = key
		}
		s.Extensions[listMapKeys] = list
	}
	for name, property := range s.Properties {
		tidy(&property)
		s.Properties[name] = property
	}
	if s.AdditionalProperties != nil {
		tidy(s.AdditionalProperties.Schema)
	}
	if s.Items != nil {
		tidy(s.Items.Schema)
	}
	tidy(s.Not)
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			tidy(&list[i])
		}
	}
	return s
}
