package schema

import (
	"slices"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Node is a schema prepared for evaluation: Kubernetes' adapter for OpenAPI schemas makes a new map of all properties
// for each lookup of a field, which for a Deployment takes most of the time.
type Node struct {
	openapi.Schema // for everything that is not overridden below

	Item   *Node            // of an array
	Fields map[string]*Node // of an object with known fields
	Values *Node            // of an object with any keys
	// Dyn means that the type is unknown: values are not converted.
	Dyn bool
	// mixed means that it contains a Dyn node, so that Kubernetes' own typed values, which need a schema, cannot be used.
	mixed bool

	propertySchemas map[string]common.Schema // Fields, as common.Schema wants them
	// names are the sorted names of Fields in expressions, without those that cannot be identifiers.
	names []string
}

var _ common.Schema = (*Node)(nil)

// Unknown is the node for values without a schema.
var Unknown = &Node{Schema: openapi.Schema{Schema: &spec.Schema{}}, Dyn: true, mixed: true}

// New prepares a schema; nil gives an unknown one. The root of a resource always has apiVersion, kind and the metadata
// of every object. Unknown are: schemas that preserve unknown fields, because there may be others; schemas without a
// type, such as a quantity; objects and arrays without properties or items.
func New(s *spec.Schema, root bool) *Node {
	if s == nil {
		return Unknown
	}
	view := openapi.Schema{Schema: s}
	if view.IsXIntOrString() {
		return &Node{Schema: view}
	}
	if view.IsXPreserveUnknownFields() {
		return Unknown
	}
	n := &Node{Schema: view}
	switch view.Type() {
	case "string", "boolean", "integer", "number":
		return n
	case "array":
		if s.Items == nil || s.Items.Schema == nil {
			return Unknown
		}
		n.Item = New(s.Items.Schema, false)
		n.mixed = n.Item.mixed
		return n
	case "object":
		return n.object(s, root || view.IsXEmbeddedResource())
	}
	return Unknown
}

// object sets the fields of a node of type object.
func (n *Node) object(s *spec.Schema, resource bool) *Node {
	open := s.AdditionalProperties != nil && (s.AdditionalProperties.Allows || s.AdditionalProperties.Schema != nil)
	switch {
	case open && (s.AdditionalProperties.Schema == nil || len(s.Properties) > 0 || resource):
		return Unknown
	case open:
		n.Values = New(s.AdditionalProperties.Schema, false)
		n.mixed = n.Values.mixed
		return n
	case len(s.Properties) == 0:
		return Unknown
	}
	n.Fields = make(map[string]*Node, len(s.Properties)+3)
	for name := range s.Properties {
		property := s.Properties[name]
		n.Fields[name] = New(&property, false)
	}
	if resource {
		for name := range resourceFields.Properties {
			property := resourceFields.Properties[name]
			n.Fields[name] = New(&property, false)
		}
	}
	n.seal()
	return n
}

// seal computes what depends on the properties.
func (n *Node) seal() {
	n.propertySchemas = make(map[string]common.Schema, len(n.Fields))
	for name, property := range n.Fields {
		n.propertySchemas[name] = property
		n.mixed = n.mixed || property.mixed
		if escaped, ok := apiservercel.Escape(name); ok {
			n.names = append(n.names, escaped)
		}
	}
	slices.Sort(n.names)
}

// Properties implements common.Schema.
func (n *Node) Properties() map[string]common.Schema { return n.propertySchemas }

// Items implements common.Schema.
func (n *Node) Items() common.Schema {
	if n.Item == nil {
		return nil
	}
	return n.Item
}

// AdditionalProperties implements common.Schema.
func (n *Node) AdditionalProperties() common.SchemaOrBool {
	if n.Values == nil {
		return nil
	}
	return anyKey{n.Values}
}

// WithTypeAndObjectMeta implements common.Schema; newNode has added them already.
func (n *Node) WithTypeAndObjectMeta() common.Schema { return n }

// anyKey is the schema of the values of a map.
type anyKey struct{ values *Node }

// Schema implements common.SchemaOrBool.
func (a anyKey) Schema() common.Schema { return a.values }

// Allows implements common.SchemaOrBool.
func (a anyKey) Allows() bool { return true }
