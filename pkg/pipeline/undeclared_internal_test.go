package pipeline

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestUndeclared: what a template reads, and what is said of a field that is never there.
func TestUndeclared(t *testing.T) {
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	item := object(map[string]spec.Schema{"port": *spec.Int64Property()})
	keeps := object(map[string]spec.Schema{"a": *spec.StringProperty()})
	keeps.AddExtension(preservesUnknown, true)
	either := object(map[string]spec.Schema{"a": *spec.StringProperty()})
	either.AnyOf = []spec.Schema{{}}
	root := object(map[string]spec.Schema{"spec": object(map[string]spec.Schema{
		"replicas": *spec.Int64Property(), "labels": *spec.MapProperty(spec.StringProperty()), "any": {}, "keeps": keeps, "either": either,
		"items": *spec.ArrayProperty(&item),
	})})
	for _, test := range []struct {
		template string
		schema   *spec.Schema
		want     string
		reason   string
	}{
		{"{{ .spec.replica }}", &root, "the schema has no .spec.replica: did you mean replicas?", "a typing error"},
		{"{{ .spec.replica | default 1 }}", &root, "the schema has no .spec.replica: did you mean replicas?", "a default would hide it"},
		{`{{ printf "%d" .spec.replica }}`, &root, "the schema has no .spec.replica: did you mean replicas?", "in a call"},
		{"{{ if .spec.unheard }}a{{ end }}", &root, "the schema has no .spec.unheard: there are any, either, items, keeps, labels, replicas", "in a condition; nothing is near"},
		{"{{ range .spec.items }}{{ .prt }}{{ end }}", &root, "the schema has no .prt: did you mean port?", "of an item"},
		{"{{ range .spec.items }}{{ $.specs.x }}{{ end }}", &root, "the schema has no .specs: did you mean spec?", "of the upstream as a variable"},
		{"{{ with $x := .spec }}{{ $x.replica }}{{ end }}", &root, "the schema has no .replica: did you mean replicas?", "of a variable"},
		{"{{ .spec.replicas }}{{ .metadata.labels.x }}{{ .kind }}", &root, "", "what is there"},
		{"{{ .spec.labels.team }}", &root, "", "a map may have any key"},
		{"{{ .spec.any.x }}", &root, "", "nothing is declared"},
		{"{{ .spec.keeps.x }}", &root, "", "what is not declared is kept"},
		{"{{ .spec.either.x }}", &root, "", "another schema may have it"},
		{"{{ .metadata.ownerReferences }}", &root, "", "metadata has more than is listed"},
		{`{{ (input "settings").data.x }}`, &root, "", "an input is no upstream"},
		{"{{ .spec.replica }}", nil, "", "no schema"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := ""
			for _, problem := range walkShapes(test.template, "{{", "}}", upstreamShape(test.schema)).undeclared {
				got += problem
			}
			if got != test.want {
				t.Errorf("of %s is said %q, want %q", test.template, got, test.want)
			}
		})
	}
}
