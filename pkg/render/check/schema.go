package check

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// typeNames are the types of schemas as people call them.
var typeNames = map[string]string{"string": "a string", "integer": "an integer",
	"number": "a number", "boolean": "a boolean",
	"array": "a list", "object": "a map"}

func names(types []string) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = typeNames[t]
	}
	return strings.Join(list, " or ")
}

// overlap reports whether a value of one of the types can be of one of the others. A number may be whole.
func overlap(have, want []string) bool {
	return have == nil || want == nil || slices.ContainsFunc(have, func(t string) bool {
		return slices.Contains(want, t) || t == "integer" && slices.Contains(want, "number") || t == "number" &&
			slices.Contains(want, "integer")
	})
}

// property is the schema of a field, declared or not; nil if it is not known.
func property(s *spec.Schema, name string) *spec.Schema {
	if p, declared := properties(s)[name]; declared {
		return &p
	}
	return kinds.ValueSchema(s)
}

// nearest asks whether another field of a schema was meant; empty if none has a name like it.
func nearest(name string, s *spec.Schema) string {
	if near := spelling.Closest(name, slices.Sorted(maps.Keys(s.Properties))); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// mayHave reports whether an object of a schema may have a field, declared or not. What has no schema, or one without
// fields, may.
func mayHave(s *spec.Schema, name string) bool {
	if _, declared := properties(s)[name]; declared || len(properties(s)) == 0 || storesAnything(s) {
		return true
	}
	embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource")
	return embedded && slices.Contains(OfEveryKind[:3], name)
}

// storesAnything reports whether the API server stores fields that the schema does not name.
func storesAnything(s *spec.Schema) bool {
	return kinds.KeepsUnknown(s) || s.AdditionalProperties != nil &&
		(s.AdditionalProperties.Allows || s.AdditionalProperties.Schema != nil)
}

func properties(s *spec.Schema) map[string]spec.Schema {
	if s == nil {
		return nil
	}
	return s.Properties
}

func isScalar(s *spec.Schema) bool {
	either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string")
	return either || len(s.Type) == 1 && (s.Type[0] == "string" || s.Type[0] == "integer" ||
		s.Type[0] == "number" || s.Type[0] == "boolean")
}

func describeScalar(s *spec.Schema) string {
	switch {
	case len(s.Type) != 1:
		return "an integer or string"
	case s.Type[0] == "integer":
		return "an integer"
	}
	return "a " + s.Type[0]
}

// OfEveryKind are the fields at the root that have rules of their own.
var OfEveryKind = []string{"apiVersion", "kind", "metadata", "status"}

// step is a key as a step of a path.
func step(key string) string { return fieldpath.New(key).String() }
