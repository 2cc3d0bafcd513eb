package load_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// A config with errors is cut down to what a deletion depends on: all of that is as it was.
func TestForDeletionKeeps(t *testing.T) {
	text := `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: cut}
watch: {apiVersion: v1, kind: Namespace}
validate: [{message: there is no rule}]
downstreams:
  - {name: first, apiVersion: v1, kind: ConfigMap, deletionPolicy: Orphan, template: "metadata: {name: first}"}
  - {name: second, apiVersion: v1, kind: Secret, ownership: Fields, after: [first], template: "metadata: {name: second}"}
  - name: third
    apiVersion: v1
    kind: Pod
    targetNamespaces: {from: List, names: [other]}
    after: [{name: second, until: Created}]
    when: downstreams.first.data.size() > 0
    template: |
      metadata: {name: {{ (downstream "second").metadata.name }
status: {conditions: {ready: Ready}}
conventions: {fieldManager: cut, labels: {test.example.com/managed: cut}, owner: {annotation: test.example.com/owner},
  finalizer: test.example.com/cut, hash: {annotation: test.example.com/hash}}
deletion: {wait: true}
`
	file := filepath.Join(t.TempDir(), "operator.yaml")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	files, _ := load.Operators(load.Options{Files: []string{file}})
	cut, held := files[0].ForDeletion()
	if len(held) > 0 {
		t.Fatal(held)
	}
	if cut.Deletion != files[0].Deletion || cut.Conventions.Finalizer != files[0].Conventions.Finalizer {
		t.Errorf("%+v", cut.Operator)
	}
	after := [][]string{nil, {"first"}, {"second", "first"}}
	for i, have := range files[0].Downstreams {
		d := cut.Downstreams[i]
		if d.Name != have.Name || d.DeletionPolicy != have.DeletionPolicy || d.Ownership != have.Ownership ||
			d.TargetNamespaces.From != have.TargetNamespaces.From || !slices.Equal(d.TargetNamespaces.Names, have.TargetNamespaces.Names) {
			t.Errorf("%+v, and it was %+v", d, have)
		}
		var names []string
		for _, a := range d.After {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
		if !slices.Equal(names, after[i]) {
			t.Errorf("%s is deleted before %v, and not %v", d.Name, names, after[i])
		}
	}
}

// Of a config with errors, all texts tell which downstream is deleted last: variables and helpers, too.
func TestForDeletionOrder(t *testing.T) {
	for _, row := range []struct {
		reason, more  string
		first, second string // templates
		held          string
		want          string // what the second comes after
		wait          bool
	}{
		{reason: "a variable reads it", more: `variables: [{name: key, expression: downstreams.first.data}]`, second: `x: {{ variable "key" }}`, want: "first"},
		{reason: "through another variable", more: `variables: [{name: a, expression: "downstreams[?'first']"}, {name: key, expression: variables.a}]`, second: `x: {{ variable "key" }}`, want: "first"},
		{reason: "a helper reads it", more: `helpers: '{{ define "a" }}{{ end }}{{ define "key" }}{{ (downstream "first").data }}{{ end }}'`, second: `x: {{ include "key" . }}`, want: "first"},
		{reason: "a helper uses a variable", more: `{variables: [{name: a, expression: "downstreams.?first"}], helpers: '{{ define "key" }}{{ variable "a" }}{{ end }}'}`,
			second: "x: {{ template `key` . }}", want: "first"},
		{reason: "nothing uses the variable", more: `variables: [{name: key, expression: downstreams.first.data}]`, second: `x: {{ variable "other" }}`},
		{reason: "nothing uses the helper", more: `helpers: '{{ define "key" }}{{ (downstream "first").data }}{{ end }}'`, second: `x: {{ include "other" . }}`},
		{reason: "another one has a longer name", second: `x: {{ (downstream "first-of-all").data }}`},
		{reason: "a comment names the other way round", first: `x: 1 # for downstreams.second`, second: `x: {{ (downstream "first").data }}`, want: "first"},
		{reason: "so does a comment of the template", first: `x: {{/* for downstreams.second */}}`, second: `x: {{ (downstream "first").data }}`, want: "first"},
		{reason: "what looks like a comment is none", second: `x: "a #{{ (downstream "first").data }}"`, want: "first"},

		{reason: "the text cannot be read", wait: true, more: `downstreams: [{}, {templateFile: none.tmpl}]`, held: "downstreams[1].templateFile"},
		{reason: "and no order is kept", more: `downstreams: [{}, {templateFile: none.tmpl}]`},
		{reason: "the helpers cannot be read", wait: true, more: `helpersFile: none.tmpl`, held: "helpersFile"},
		{reason: "a variable cannot be read", wait: true, more: `variables: [{name: key, expression: [1]}]`, held: "variables[0].expression"},
		{reason: "when cannot be read", wait: true, more: `downstreams: [{}, {when: [1]}]`, held: "downstreams[1].when"},
		{reason: "what else is wrong does not matter", wait: true, more: `validate: [{message: there is no rule}]`},
	} {
		more := map[string]any{}
		must.Do(t, yaml.Unmarshal([]byte(row.more), &more), row.reason)
		var downstreams []any
		for i, d := range []map[string]any{{"name": "first", "template": row.first}, {"name": "second", "template": row.second}} {
			d["apiVersion"], d["kind"] = "v1", "ConfigMap"
			if list, _ := more["downstreams"].([]any); list != nil {
				change, _ := list[i].(map[string]any)
				if maps.Copy(d, change); d["templateFile"] != nil {
					delete(d, "template")
				}
			}
			if d["template"] == "" {
				d["template"] = "x: 1"
			}
			downstreams = append(downstreams, d)
		}
		more["downstreams"] = downstreams
		text := must.Get(yaml.Marshal(more)).In(t)
		file := filepath.Join(t.TempDir(), "operator.yaml")
		must.Do(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: cut}
watch: {apiVersion: v1, kind: Namespace}
status: {enabled: false}
conventions: {fieldManager: cut, labels: {test.example.com/managed: cut}, owner: {annotation: test.example.com/owner},
  finalizer: test.example.com/cut, hash: {annotation: test.example.com/hash}}
deletion: {wait: %t}
%s`, row.wait, text), 0o600))
		files, _ := load.Operators(load.Options{Files: []string{file}})
		cut, held := files[0].ForDeletion()
		if row.held != "" || len(held) > 0 {
			if len(held) != 1 || held[0].Path != row.held {
				t.Errorf("%s: held by %v", row.reason, held)
			}
			continue
		}
		var got []string
		for _, a := range cut.Downstreams[1].After {
			got = append(got, a.Name)
		}
		if strings.Join(slices.Compact(got), " ") != row.want {
			t.Errorf("%s: the second comes after %v", row.reason, got)
		}
		if row.want != "" && len(cut.Downstreams[0].After) > 0 {
			t.Errorf("%s: the first comes after %v", row.reason, cut.Downstreams[0].After)
		}
	}
}
