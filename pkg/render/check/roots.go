package check

import (
	"maps"
	"strconv"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Roots are the schemas of what a template begins with; nil ones are not known.
type Roots struct {
	Upstream, Item *spec.Schema
	Variables      map[string]*spec.Schema
	// Objects are those of inputs and of other downstreams, by ObjectName.
	Objects map[string]*spec.Schema
}

// preservesUnknown marks a schema whose objects may have fields that it does not declare.
const preservesUnknown = "x-kubernetes-preserve-unknown-fields"

// ObjectName is how a template names an input or a downstream, such as input "settings".
func ObjectName(function, name string) string { return function + " " + strconv.Quote(name) }

// Object is the schema of an object that is not the upstream: alone, in a list, or in a map by names.
func Object(s *spec.Schema, inList, byName bool) *spec.Schema {
	if s == nil {
		return nil
	}
	object := upstreamShape(s).schema
	switch {
	case inList:
		return spec.ArrayProperty(object)
	case byName:
		return spec.MapProperty(object)
	}
	return object
}

// upstreamShape is an upstream's: what every kind has, and what its schema declares besides.
func upstreamShape(s *spec.Schema) shape {
	root := spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{}}}
	if s != nil {
		maps.Copy(root.Properties, s.Properties)
		root.AdditionalProperties, root.Extensions = s.AdditionalProperties, s.Extensions
	} else {
		root.AddExtension(preservesUnknown, true)
	}
	text, texts := *spec.StringProperty(), *spec.MapProperty(spec.StringProperty())
	root.Properties["apiVersion"], root.Properties["kind"] = text, text
	root.Properties["metadata"] = spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{
		"name": text, "namespace": text, "uid": text, "generateName": text,
		"resourceVersion": text, "creationTimestamp": text,
		"generation": *spec.Int64Property(), "labels": texts, "annotations": texts, "selfLink": text,
		"deletionTimestamp": text, "deletionGracePeriodSeconds": *spec.Int64Property(),
		"finalizers": *spec.ArrayProperty(&text), "ownerReferences": *spec.ArrayProperty(&spec.Schema{}),
		"managedFields": *spec.ArrayProperty(&spec.Schema{}),
	}}}
	return shape{schema: &root, at: []string{}}
}
