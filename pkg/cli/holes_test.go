package cli

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestScalarField(t *testing.T) {
	either := spec.Schema{}
	either.AddExtension("x-kubernetes-int-or-string", true)
	properties := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"color": *spec.StringProperty(), "port": either, "any": {}, "list": *spec.ArrayProperty(spec.StringProperty()),
		"labels": *spec.MapProperty(spec.StringProperty()), "nested": *spec.MapProperty(spec.MapProperty(spec.StringProperty())),
	}}}
	root := &spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"spec": properties}}}
	for _, test := range []struct {
		text   string
		schema *spec.Schema
		want   bool
		reason string
	}{
		{".spec.color", root, true, "a string"},
		{".spec.port", root, true, "a number or a string"},
		{".spec.labels.team", root, true, "a string of a map"},
		{`.spec.color | default "none"`, root, true, "text instead of a missing one"},
		{".spec.color | default -1 | omitempty", root, true, "a number instead, or nothing"},
		{".metadata.name", nil, true, "a name is text in every kind"},
		{".spec.color", nil, false, "without a schema nothing is known"},
		{".spec.any", root, false, "no type is declared"},
		{".spec.list", root, false, "a list"},
		{".spec.labels", root, false, "a map"},
		{".spec.nested.team", root, false, "a map of maps"},
		{".spec.unknown", root, false, "not declared"},
		{".spec", root, false, "an object"},
		{".spec.color | default .spec.labels", root, false, "the default is a map"},
		{".spec.color | splitList \",\"", root, false, "a function may give anything"},
		{`dict "a" .spec.color`, root, false, "so may this one"},
		{"$color", root, false, "what a variable holds is not followed"},
	} {
		if got := scalarField(test.schema, test.text); got != test.want {
			t.Errorf("%s: %s: got %t, want %t", test.reason, test.text, got, test.want)
		}
	}
}
