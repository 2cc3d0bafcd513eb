package kinds

import "k8s.io/kube-openapi/pkg/validation/spec"

// preservesUnknown marks a schema whose objects may have fields that it does not declare.
const preservesUnknown = "x-kubernetes-preserve-unknown-fields"

// KeepsUnknown reports whether the API server stores fields that a schema does not declare.
func KeepsUnknown(s *spec.Schema) bool {
	keeps, _ := s.Extensions.GetBool(preservesUnknown)
	return keeps
}

// TypesOf are the types that a schema takes; nil if it takes any, or that is not known.
func TypesOf(s *spec.Schema) []string {
	if s = PlainSchema(s); s == nil {
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
		types := TypesOf(&one)
		if types == nil {
			return nil
		}
		all = append(all, types...)
	}
	return all
}

// PlainSchema is a schema without what a published one has around it to give it a description of its own.
func PlainSchema(s *spec.Schema) *spec.Schema {
	for s != nil && len(s.AllOf) == 1 && len(s.Type) == 0 && len(s.Properties) == 0 && s.Items == nil {
		s = &s.AllOf[0]
	}
	return s
}

// ItemSchema is the schema of the items of a list; nil if it is not known.
func ItemSchema(s *spec.Schema) *spec.Schema {
	if s == nil || s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

// ValueSchema is the schema of the values of a map; nil if it is not known.
func ValueSchema(s *spec.Schema) *spec.Schema {
	if s == nil || s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}
