package schema

import "k8s.io/kube-openapi/pkg/validation/spec"

// resourceFields are the fields that every object has, without managedFields, which the caches do not keep.
var resourceFields = objectSchema(map[string]*spec.Schema{
	"apiVersion": scalar("string", ""),
	"kind":       scalar("string", ""),
	"metadata": objectSchema(map[string]*spec.Schema{
		"name":                       scalar("string", ""),
		"generateName":               scalar("string", ""),
		"namespace":                  scalar("string", ""),
		"uid":                        scalar("string", ""),
		"resourceVersion":            scalar("string", ""),
		"generation":                 scalar("integer", "int64"),
		"creationTimestamp":          scalar("string", "date-time"),
		"deletionTimestamp":          scalar("string", "date-time"),
		"deletionGracePeriodSeconds": scalar("integer", "int64"),
		"labels":                     spec.MapProperty(scalar("string", "")),
		"annotations":                spec.MapProperty(scalar("string", "")),
		"finalizers":                 spec.ArrayProperty(scalar("string", "")),
		"ownerReferences": spec.ArrayProperty(objectSchema(map[string]*spec.Schema{
			"apiVersion":         scalar("string", ""),
			"kind":               scalar("string", ""),
			"name":               scalar("string", ""),
			"uid":                scalar("string", ""),
			"controller":         scalar("boolean", ""),
			"blockOwnerDeletion": scalar("boolean", ""),
		})),
	}),
})

func scalar(typeName, format string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{typeName}, Format: format}}
}

func objectSchema(properties map[string]*spec.Schema) *spec.Schema {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
	for name, property := range properties {
		s.Properties[name] = *property
	}
	return s
}
