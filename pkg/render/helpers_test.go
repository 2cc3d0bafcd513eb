package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const helpers = `{{ define "name" }}{{ .metadata.name }}-{{ template "suffix" . }}{{ end }}
{{ define "suffix" }}{{ (input "settings").data.suffix }}{{ end }}
{{ define "size" }}{{ .spec.size }}{{ end }}
{{ define "other" }}{{ (input "other").data.x }}{{ .status.x }}{{ end }}
`

// TestHelpers: the reads of a template include those of the helpers that it uses, and no others.
func TestHelpers(t *testing.T) {
	for reason, test := range map[string]struct {
		template string
		inputs   string
		status   bool
		want     any
		problem  string
	}{
		"not used":       {template: "a: 1", want: map[string]any{"a": int64(1)}},
		"one by another": {template: `a: {{ template "name" . }}`, inputs: "settings", want: map[string]any{"a": "web-blue"}},
		"typed":          {template: `a: {{ template "size" . }}`, want: map[string]any{"a": int64(3)}},
		"as text":        {template: `a: {{ include "size" . | quote }}`, want: map[string]any{"a": "3"}},
		"of another dot": {template: `a: {{ template "size" (dict "spec" (dict "size" "x")) }}`, want: map[string]any{"a": "x"}},
		"in a define block": {template: "{{ define \"own\" }}{{ template \"size\" . }}{{ end }}\na: {{ template \"own\" . }}",
			want: map[string]any{"a": int64(3)}},
		"computed name": {template: `a: {{ include (printf "%s" "size") . | quote }}`, inputs: "other settings", status: true,
			want: map[string]any{"a": "3"}},
		"fails there": {template: "a: 1\nb: {{ template \"size\" dict }}\n", problem: "line 3 of the helpers: .spec.size is not set"},
		"fails here":  {template: "a: 1\nb: {{ .spec.tag }}\n", problem: "line 2: .spec.tag is not set"},
		"own name twice": {template: `{{ define "size" }}x{{ end }}a: 1`,
			problem: `multiple definition of template "size": give one of them another name`},
	} {
		tmpl, err := Compile(test.template, Options{Helpers: helpers})
		var got map[string]any
		if err == nil {
			if inputs := strings.Join(tmpl.Inputs(), " "); inputs != test.inputs || tmpl.ReadsStatus() != test.status {
				t.Errorf("%s: it reads the inputs %q, and the status: %t", reason, inputs, tmpl.ReadsStatus())
			}
			got, err = tmpl.Execute(Data{
				Upstream: map[string]any{"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"size": int64(3)}},
				Inputs:   map[string]any{"settings": map[string]any{"data": map[string]any{"suffix": "blue"}}},
			})
		}
		switch {
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %v", reason, err)
		case test.problem == "" && err != nil:
			t.Errorf("%s: %v", reason, err)
		case test.problem == "":
			if diff := cmp.Diff(test.want, any(got)); diff != "" {
				t.Errorf("%s: %s", reason, diff)
			}
		}
	}
}
