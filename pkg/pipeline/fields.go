package pipeline

import "k8s.io/kube-openapi/pkg/validation/spec"

// FieldSchemas tells what is known of the values of status.fields, in the config's order; nil if nothing is.
func (p *Pipeline) FieldSchemas() []*spec.Schema {
	list := make([]*spec.Schema, len(p.fields))
	for i, program := range p.fields {
		list[i] = program.Result()
	}
	return list
}
