package check

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
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
		{"{{ if .spec.unheard }}a{{ end }}", &root,
			"the schema has no .spec.unheard: there are any, either, items, keeps, labels, replicas", "in a condition; nothing is near"},
		{"{{ range .spec.items }}{{ .prt }}{{ end }}", &root, "the schema has no .prt: did you mean port?", "of an item"},
		{"{{ range .spec.items }}{{ $.specs.x }}{{ end }}", &root, "the schema has no .specs: did you mean spec?",
			"of the upstream as a variable"},
		{"{{ with $x := .spec }}{{ $x.replica }}{{ end }}", &root, "the schema has no .replica: did you mean replicas?", "of a variable"},
		{"{{ .spec.replicas }}{{ .metadata.labels.x }}{{ .kind }}", &root, "", "what is there"},
		{"{{ .spec.labels.team }}", &root, "", "a map may have any key"},
		{"{{ .spec.any.x }}", &root, "", "nothing is declared"},
		{"{{ .spec.keeps.x }}", &root, "", "what is not declared is kept"},
		{"{{ .spec.either.x }}", &root, "", "another schema may have it"},
		{"{{ .metadata.ownerReferences }}{{ range .metadata.ownerReferences }}{{ .name }}{{ end }}{{ .metadata.deletionTimestamp }}", &root, "",
			"metadata that not every object has"},
		{"{{ .metadata.nam }}", &root, "the schema has no .metadata.nam: did you mean name?", "metadata that no object has"},
		{"{{ .metadata.nam }}", nil, "the schema has no .metadata.nam: did you mean name?", "also of a kind without a schema"},
		{"{{ .metadata.name.x }}", &root, "the schema has no .metadata.name.x: a string has no fields", "of a text"},
		{"{{ .spec.replicas.x }}", &root, "the schema has no .spec.replicas.x: an integer has no fields", "of a number"},
		{"{{ .spec.labels.team.x }}", &root, "the schema has no .spec.labels.team.x: a string has no fields", "of a value of a map"},
		{"{{ range .spec.labels }}{{ .x }}{{ end }}", &root, "the schema has no .x: a string has no fields", "of an item that is a text"},
		{"{{ range $k, $v := .spec.labels }}{{ $v.x }}{{ end }}", &root, "the schema has no .x: a string has no fields", "by a variable"},
		{`{{ index .spec "replica" }}`, &root, "the schema has no .spec.replica: did you mean replicas?", "by index"},
		{`{{ index . "spec" "replica" }}`, &root, "the schema has no .spec.replica: did you mean replicas?", "by index, two fields"},
		{`{{ index .spec.labels "x" }}{{ index .spec.items 0 }}{{ index .spec .metadata.name }}{{ index .spec "replicas" }}`, &root, "", "by index, what may be there"},
		{`{{ (input "settings").data.x }}`, &root, "", "an input is no upstream"},
		{"{{ .spec.replica }}", nil, "", "no schema"},
		{`{{ printf "%d" .metadata.name }}`, &root, `printf "%d" never fits its values (string): use %v, %s for a string, %d for an integer`, "a verb of numbers for a text"},
		{`{{ .spec.replicas | printf "%s-%s" .metadata.name }}`, &root,
			`printf "%s-%s" never fits its values (string, integer): use %v, %s for a string, %d for an integer`, "a verb of texts for a number that is piped in"},
		{`{{ printf "%s" }}`, nil, `printf "%s" never fits its values (): use %v, %s for a string, %d for an integer`, "a value too few"},
		{`{{ printf "%5.1f%%%v%s%d" .spec.any .spec.replicas .metadata.name .spec.replicas }}{{ printf "%*d" .spec.replicas .spec.replicas }}`, &root, "", "verbs that fit"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := ""
			for _, problem := range Walk(test.template, render.Options{}, Roots{Upstream: test.schema}).Findings {
				got += problem.Problem
			}
			if got != test.want {
				t.Errorf("of %s is said %q, want %q", test.template, got, test.want)
			}
		})
	}
}

// TestUndeclaredOfItems: the same of the items of forEach, of a list and of a map.
func TestUndeclaredOfItems(t *testing.T) {
	worker := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"},
		Properties: map[string]spec.Schema{"name": *spec.StringProperty()}}}
	fields := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"list": *spec.ArrayProperty(&worker), "map": *spec.MapProperty(&worker), "names": *spec.ArrayProperty(spec.StringProperty()),
	}}}
	root := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": fields}}}
	env, err := rules.NewEnv(rules.EnvOptions{Self: &root})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ items, template, want, reason string }{
		{"self.spec.list", "{{ item.name }}", "", "what is there"},
		{"self.spec.list", "{{ item.nam }}", "the schema has no item.nam: did you mean name?", "a typing error"},
		{"self.spec.list", "{{ with item }}{{ .nam }}{{ end }}", "the schema has no .nam: did you mean name?", "by the dot"},
		{"self.spec.list.filter(w, w.name != '')", "{{ $x := item }}{{ $x.nam }}", "the schema has no .nam: did you mean name?", "by a variable"},
		{"self.spec.map", "{{ item.key }}{{ item.value.name }}", "", "an entry of a map"},
		{"self.spec.map", "{{ item.name }}", "the schema has no item.name: there are key, value", "an entry is no value"},
		{"self.spec.map", "{{ item.value.nam }}", "the schema has no item.value.nam: did you mean name?", "a field of the value"},
		{"self.spec.names", "{{ item }}", "", "a text"},
		{"self.spec.list.map(w, {'x': w.name})", "{{ item.y }}", "", "of what an expression makes nothing is known"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			program, err := env.Items(test.items, "worker")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			in := Roots{Upstream: &root, Item: program.Schema()}
			for _, problem := range Walk(test.template, render.Options{}, in).Findings {
				got += problem.Problem
			}
			if got != test.want {
				t.Errorf("of %s is said %q, want %q", test.template, got, test.want)
			}
		})
	}
}

// TestUndeclaredOfObjects: the same of inputs and of other downstreams, one by one, in a list, and by name.
func TestUndeclaredOfObjects(t *testing.T) {
	fields := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"},
		Properties: map[string]spec.Schema{"clusterIP": *spec.StringProperty()}}}
	nested := spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{fields}}} // as in the schemas of built-in kinds
	root := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": nested}}}
	in := Roots{Objects: map[string]*spec.Schema{}}
	add := func(name string, schema *spec.Schema, several bool) {
		in.Objects[ObjectName("downstream", name)] = Object(schema, false, several)
		in.Objects[ObjectName("input", name)] = Object(schema, several, false)
	}
	add("one", &root, false)
	add("more", &root, true)
	add("any", nil, false)
	for _, test := range []struct{ template, want, reason string }{
		{`{{ (downstream "one").spec.clusterIP }}{{ (downstream "one").metadata.uid }}`, "", "what is there"},
		{`{{ (downstream "one").spec.clusterIp }}`, `the schema has no (downstream "one").spec.clusterIp: did you mean clusterIP?`, "a typing error"},
		{`{{ (input "one").spec.clusterIp }}`, `the schema has no (input "one").spec.clusterIp: did you mean clusterIP?`, "an input"},
		{`{{ $s := downstream "one" }}{{ $s.specs }}`, "the schema has no .specs: did you mean spec?", "by a variable"},
		{`{{ with downstream "one" }}{{ .spek }}{{ end }}`, "the schema has no .spek: did you mean spec?", "by the dot"},
		{`{{ if (downstream "one").spec.clusterIp }}x{{ end }}`, `the schema has no (downstream "one").spec.clusterIp: did you mean clusterIP?`, "in a condition"},
		{`{{ range input "more" }}{{ .spec.clusterIp }}{{ end }}`, "the schema has no .spec.clusterIp: did you mean clusterIP?", "a list"},
		{`{{ range downstream "more" }}{{ .spec.clusterIp }}{{ end }}`, "the schema has no .spec.clusterIp: did you mean clusterIP?", "objects by name"},
		{`{{ (downstream "more").a.spec.clusterIp }}`, `the schema has no (downstream "more").a.spec.clusterIp: did you mean clusterIP?`, "one of them"},
		{`{{ (downstream "any").spec.clusterIp }}{{ (input "any").x }}{{ (input .spec.name).x }}`, "", "nothing is known"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := ""
			for _, problem := range Walk(test.template, render.Options{}, in).Findings {
				got += problem.Problem
			}
			if got != test.want {
				t.Errorf("of %s is said %q, want %q", test.template, got, test.want)
			}
		})
	}
}

// TestUndeclaredOptional: rendering always fails without a field that the schema lacks, unless the template can do
// without it.
func TestUndeclaredOptional(t *testing.T) {
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	embedded := object(map[string]spec.Schema{"spec": object(map[string]spec.Schema{"a": *spec.StringProperty()})})
	embedded.AddExtension("x-kubernetes-embedded-resource", true)
	root := object(map[string]spec.Schema{"spec": object(map[string]spec.Schema{
		"flag": *spec.BooleanProperty(), "replicas": *spec.Int64Property(), "list": *spec.ArrayProperty(spec.StringProperty()), "pod": embedded,
	})})
	for _, test := range []struct {
		template, want string
		reason         string
	}{
		{`{{ .spec.replcas }}`, "error", "printed"},
		{`"{{ .spec.replcas }}:1"`, "error", "in text"},
		{`{{ .spec.replcas | quote }}`, "error", "in a function that needs it"},
		{`{{ if .spec.flag }}{{ .spec.replcas }}{{ end }}`, "error", "whenever it is reached"},
		{`{{ range .spec.list }}{{ $.spec.replcas }}{{ end }}`, "error", "for each item"},
		{`{{ range .spec.lst }}a{{ end }}`, "warning", "no items"},
		{`{{ define "a" }}{{ .spec.replcas }}{{ end }}{{ include "a" . }}`, "error", "in a define block"},
		{`{{ .spec.replcas | default 1 }}`, "warning", "the default takes its place"},
		{`{{ default .spec.replicas .spec.replcas }}`, "warning", "the same, the other way round"},
		{`{{ .spec.replcas | omitempty }}`, "warning", "left out"},
		{`{{ if .spec.replcas }}a{{ end }}`, "warning", "a condition"},
		{`{{ if .spec.replcas }}{{ .spec.replcas }}{{ end }}`, "warning", "never reached"},
		{`{{ with .spec.replcas }}{{ . }}{{ else }}{{ .spec.replicas }}{{ end }}`, "warning", "a condition with an alternative"},
		{`{{ define "a" }}{{ if .spec.flag }}{{ .spec.replcas }}{{ end }}{{ end }}{{ include "a" . }}`, "warning", "a helper may be for several kinds"},
		{`{{ if .spec.replcas }}a{{ end }}{{ .spec.replcas }}`, "error", "the condition does not cover it"},
		{`{{ .spec.pod.metadata.name }}{{ .spec.pod.apiVersion }}{{ .spec.pod.spec.a }}`, "", "an embedded object has what every object has"},
		{`{{ .spec.pod.spek }}`, "error", "and no other"},
	} {
		got := ""
		for _, problem := range Walk(test.template, render.Options{}, Roots{Upstream: &root}).Findings {
			if got != "error" {
				got = "error"
				if problem.Unsure {
					got = "warning"
				}
			}
		}
		if got != test.want {
			t.Errorf("%s: %s: got %q, want %q", test.reason, test.template, got, test.want)
		}
	}
}
