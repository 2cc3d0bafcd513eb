package check

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/render"
)

// TestClosed: of two holes, HOLE[…] must be closed and anything else open.
func TestClosed(t *testing.T) {
	either := spec.Schema{}
	either.AddExtension("x-kubernetes-int-or-string", true)
	properties := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"color": *spec.StringProperty(), "port": either, "any": {}, "list": *spec.ArrayProperty(spec.StringProperty()),
		"labels": *spec.MapProperty(spec.StringProperty()), "nested": *spec.MapProperty(spec.MapProperty(spec.StringProperty())),
		"pods": *spec.ArrayProperty(&spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"color": {},
			"name": *spec.StringProperty()}}}),
	}}}
	root := &spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"spec": properties}}}
	for _, test := range []struct {
		template string
		schema   *spec.Schema
		want     bool // whether the last action is closed
		reason   string
	}{
		{"{{ .spec.color }}", root, true, "a string"},
		{"{{ .spec.port }}", root, true, "a number or a string"},
		{"{{ .spec.labels.team }}", root, true, "a string of a map"},
		{`{{ .spec.color | default "none" }}`, root, true, "text instead of a missing one"},
		{`{{ default "none" .spec.color }}`, root, true, "the same, the other way round"},
		{"{{ .spec.color | default -1 | omitempty }}", root, true, "a number instead, or nothing"},
		{"{{ .spec.color | default .spec.port }}", root, true, "another scalar instead"},
		{"{{ .metadata.name }}", nil, true, "a name is text in every kind"},
		{"{{ .metadata.labels.team }}", nil, true, "so is a label"},
		{"{{ .metadata.labels }}", nil, false, "but not all of them"},
		{"{{ .spec.color }}", nil, false, "without a schema nothing is known"},
		{"{{ .spec.any }}", root, false, "no type is declared"},
		{"{{ .spec.list }}", root, false, "a list"},
		{"{{ .spec.labels }}", root, false, "a map"},
		{"{{ .spec.nested.team }}", root, false, "a map of maps"},
		{"{{ .spec.unknown }}", root, false, "not declared"},
		{"{{ .spec }}", root, false, "an object"},
		{"{{ . }}", root, false, "everything"},
		{"{{ .spec.color | default .spec.labels }}", root, false, "the default is a map"},
		{`{{ .spec.color | splitList "," }}`, root, false, "a function may give anything"},
		{`{{ dict "a" .spec.color }}`, root, false, "so may this one"},
		{`{{ omitempty }}`, root, false, "nothing to omit"},
		{"{{ $c := .spec.color }}{{ $c }}", root, true, "a variable holds what it was given"},
		{"{{ $c := .spec.labels }}{{ $c.team }}", root, true, "and has its fields"},
		{"{{ $c := .spec.labels }}{{ $c }}", root, false, "also where that is a map"},
		{"{{ $c := .spec.color }}{{ if .x }}{{ $c = .spec.labels }}{{ end }}{{ $c }}", root, false, "assigned anew"},
		{"{{ $c := .spec.color }}{{ range .spec.list }}{{ $c }}{{ $c = $.spec.labels }}{{ end }}", root, false,
			"assigned anew for the next round"},
		{"{{ $c := .spec.labels }}{{ if .x }}{{ $c := .spec.color }}{{ end }}{{ $c }}", root, false, "another variable of that name, in a block"},
		{"{{ if .x }}{{ $c := .spec.color }}{{ end }}{{ $c := .spec.list }}{{ $c }}", root, false, "and one before"},
		{"{{ range .spec.list }}{{ . }}{{ end }}", root, true, "a string of a list"},
		{"{{ range .spec.pods }}{{ .name }}{{ end }}", root, true, "a field of an item"},
		{"{{ range .spec.pods }}{{ .color }}{{ end }}", root, false, "the dot is the item, not the upstream"},
		{"{{ range .spec.pods }}{{ .spec.color }}{{ end }}", root, false, "so this is no field of the upstream"},
		{"{{ range .spec.pods }}{{ $.spec.color }}{{ end }}", root, true, "$ is"},
		{"{{ range $k, $v := .spec.nested }}{{ $k }}{{ end }}", root, true, "a key is text or a number"},
		{"{{ range $k, $v := .spec.nested }}{{ $v }}{{ end }}", root, false, "a map of the map"},
		{"{{ range $k, $v := .spec.labels }}{{ $v }}{{ end }}", root, true, "a string of the map"},
		{"{{ range $v := .spec.nested }}{{ $v }}{{ end }}", root, false, "a single variable is the item"},
		{"{{ range .spec.list }}a{{ else }}{{ .spec.color }}{{ end }}", root, true, "in else the dot is what it was"},
		{"{{ with .spec }}{{ .color }}{{ end }}", root, true, "a field of what with gives"},
		{"{{ with .spec.labels }}{{ . }}{{ end }}", root, false, "a map"},
		{"{{ with $x := .spec.color }}{{ $x }}{{ end }}", root, true, "with a variable"},
		{"{{ (.spec).color }}", root, true, "parentheses"},
		{`{{ (index .spec.nested "a").b }}`, root, false, "a function's result"},
		{`{{ define "x" }}{{ .spec.color }}{{ end }}a`, root, false, "the dot of a define is what it is handed"},
		{`{{ block "x" .spec.pods }}{{ .spec.color }}{{ end }}`, root, false, "as that of a block"},
	} {
		at := strings.LastIndex(strings.ReplaceAll(strings.ReplaceAll(test.template, "{{ end }}", "{} end }}"),
			"{{ $c = $.spec", "{} $c = $.spec"), "{{ ") + 3
		got := false
		for pos, s := range Walk(test.template, render.Options{}, Roots{Upstream: test.schema}).printed {
			got = got || pos == (place{1, at + 1}) && s.closed()
		}
		if got != test.want {
			t.Errorf("%s: %s: got %t, want %t", test.reason, test.template, got, test.want)
		}
	}
}

// TestConstants: what only the config's author decides is trusted, whatever it is.
func TestConstants(t *testing.T) {
	for _, test := range []struct {
		template string
		want     bool // whether the last hole is constant
		reason   string
	}{
		{`{{ param "p" }}`, true, "a parameter"},
		{`{{ param "p" | toYaml | nindent 4 }}`, true, "laid out"},
		{`{{ (param "p").a.b }}`, true, "a part of it"},
		{`{{ index (param "p") "a.b" }}`, true, "a part by its key"},
		{`{{ merge (param "p") (dict "a" 1) }}`, true, "made of constants"},
		{`{{ param "p" | default "x" }}`, true, "a parameter or a constant"},
		{`{{ param "p" | default .spec.x }}`, false, "or a field"},
		{`{{ merge (param "p") .spec.x }}`, false, "with a field"},
		{`{{ .spec.x | merge (param "p") }}`, false, "with a field that is piped"},
		{`{{ index (param "p") .spec.x }}`, true, "a part that a field chooses"},
		{`{{ $p := param "p" }}{{ $p.a }}`, true, "by a variable"},
		{`{{ with param "p" }}{{ .a }}{{ end }}`, true, "by the dot"},
		{`{{ range $k, $v := param "p" }}{{ $v }}{{ end }}`, true, "an item"},
		{`{{ $p := param "p" }}{{ if .x }}{{ $p = .spec.x }}{{ end }}{{ $p }}`, false, "assigned to anew"},
		{`{{ (input "p").data }}`, false, "of an object"},
		{`{{ variable "p" }}`, false, "computed from anything"},
		{`{{ .spec.x }}`, false, "a field"},
	} {
		at := strings.LastIndex(strings.ReplaceAll(test.template, "{{ end }}", "{} end }}"), "{{ ") + 3
		got := false
		for pos, s := range Walk(test.template, render.Options{}, Roots{}).printed {
			got = got || pos == (place{1, at + 1}) && s.constant
		}
		if got != test.want {
			t.Errorf("%s: %s: got %t, want %t", test.reason, test.template, got, test.want)
		}
	}
}
