package rules

import (
	"slices"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// node is a schema prepared for evaluation: Kubernetes' adapter for OpenAPI schemas makes a new map of all properties for each
// lookup of a field, which for a Deployment takes most of the time.
type node struct {
	openapi.Schema // for everything that is not overridden below

	items      *node            // of an array
	properties map[string]*node // of an object with known fields
	values     *node            // of an object with any keys
	// dyn means that the type is unknown: values are not converted.
	dyn bool
	// mixed means that it contains a dyn node, so that Kubernetes' own typed values, which need a schema, cannot be used.
	mixed bool

	propertySchemas map[string]common.Schema // properties, as common.Schema wants them
	// fields are the sorted names of properties in expressions, without those that cannot be identifiers.
	fields []string
}

var _ common.Schema = (*node)(nil)

// unknown is the node for values without a schema.
var unknown = &node{Schema: openapi.Schema{Schema: &spec.Schema{}}, dyn: true, mixed: true}

// newNode prepares a schema; nil gives an unknown one. The root of a resource always has apiVersion, kind and the metadata of every
// object. Unknown are: schemas that preserve unknown fields, because there may be others; schemas without a type, such as a
// quantity; objects and arrays without properties or items.
func newNode(s *spec.Schema, root bool) *node {
	if s == nil {
		return unknown
	}
	view := openapi.Schema{Schema: s}
	if view.IsXIntOrString() {
		return &node{Schema: view}
	}
	if view.IsXPreserveUnknownFields() {
		return unknown
	}
	n := &node{Schema: view}
	switch view.Type() {
	case "string", "boolean", "integer", "number":
		return n
	case "array":
		if s.Items == nil || s.Items.Schema == nil {
			return unknown
		}
		n.items = newNode(s.Items.Schema, false)
		n.mixed = n.items.mixed
		return n
	case "object":
		return n.object(s, root || view.IsXEmbeddedResource())
	}
	return unknown
}

// object sets the fields of a node of type object.
func (n *node) object(s *spec.Schema, resource bool) *node {
	open := s.AdditionalProperties != nil && (s.AdditionalProperties.Allows || s.AdditionalProperties.Schema != nil)
	switch {
	case open && (s.AdditionalProperties.Schema == nil || len(s.Properties) > 0 || resource):
		return unknown
	case open:
		n.values = newNode(s.AdditionalProperties.Schema, false)
		n.mixed = n.values.mixed
		return n
	case len(s.Properties) == 0:
		return unknown
	}
	n.properties = make(map[string]*node, len(s.Properties)+3)
	for name := range s.Properties {
		property := s.Properties[name]
		n.properties[name] = newNode(&property, false)
	}
	if resource {
		for name := range resourceFields.Properties {
			property := resourceFields.Properties[name]
			n.properties[name] = newNode(&property, false)
		}
	}
	n.seal()
	return n
}

// seal computes what depends on the properties.
func (n *node) seal() {
	n.propertySchemas = make(map[string]common.Schema, len(n.properties))
	for name, property := range n.properties {
		n.propertySchemas[name] = property
		n.mixed = n.mixed || property.mixed
		if escaped, ok := apiservercel.Escape(name); ok {
			n.fields = append(n.fields, escaped)
		}
	}
	slices.Sort(n.fields)
}

// Properties implements common.Schema.
func (n *node) Properties() map[string]common.Schema { return n.propertySchemas }

// Items implements common.Schema.
func (n *node) Items() common.Schema {
	if n.items == nil {
		return nil
	}
	return n.items
}

// AdditionalProperties implements common.Schema.
func (n *node) AdditionalProperties() common.SchemaOrBool {
	if n.values == nil {
		return nil
	}
	return anyKey{n.values}
}

// WithTypeAndObjectMeta implements common.Schema; newNode has added them already.
func (n *node) WithTypeAndObjectMeta() common.Schema { return n }

// anyKey is the schema of the values of a map.
type anyKey struct{ values *node }

// Schema implements common.SchemaOrBool.
func (a anyKey) Schema() common.Schema { return a.values }

// Allows implements common.SchemaOrBool.
func (a anyKey) Allows() bool { return true }
