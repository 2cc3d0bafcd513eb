package pipeline

import "k8s.io/kube-openapi/pkg/validation/spec"

// FieldSchemas tells what is known of the values of status.fields, in the config's order; nil if nothing is.
func (p *Pipeline) FieldSchemas() []*spec.Schema {
	list := make([]*spec.Schema, len(p.fields))
	for i, f := range p.fields {
		list[i] = f.program.Result()
	}
	return list
}
