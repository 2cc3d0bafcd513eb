package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSyntaxErrorsSayHowToFix(t *testing.T) {
	for _, c := range []struct{ reason, template, want string }{
		{"Helm's authors know only keys that are plain words", `a: {{ .labels.a/b }}`, "is read by `index`"},
		{"a hyphen is no part of a field's name", `a: {{ .labels.a-b }}`, "is read by `index`"},
		{"as in CEL and Go", `a: {{ .labels["a"] }}`, "is read by `index`"},
		{"one brace is lost easily", `a: {{ .a }`, "close it with }}"},
		{"as in CEL and Go", `a: {{ if .a == 1 }}x{{ end }}`, "eq A B"},
		{"as in CEL and Go", `a: {{ if !.a }}x{{ end }}`, "not A"},
		{"as in CEL and Go", `a: {{ if .a || .b }}x{{ end }}`, "or A B"},
		{"as in CEL and Go", `a: {{ if .a && .b }}x{{ end }}`, "and A B"},
		{"as in CEL and Go", `a: {{ if .a > 1 }}x{{ end }}`, "gt A B"},
		{"as in CEL and Go", `a: {{ if .a < 1 }}x{{ end }}`, "lt A B"},
		{"as in CEL", `a: {{ .a ? 1 : 2 }}`, "ternary"},
		{"as in CEL and Go", `a: {{ .a + .b }}`, "add A B"},
		{"as in YAML", `a: {{ 'bc' }}`, "double quotes"},
		{"a variable of another template", `a: {{ $b }}`, "$name := VALUE"},
		{"one end too many", `a: {{ .b }}{{ end }}`, "that it would close"},
		{"an else without if", `a: {{ .b }}{{ else }}`, "that it belongs to"},
		{"an empty action", `a: {{ }}`, "write a value"},
		{"the dot forgotten", `a: {{ metadata.name }}`, "a field begins with a dot: .metadata"},
		{"CEL's name of the upstream", `a: {{ self.metadata.name }}`, "the upstream is the dot"},
		{"a word of YAML", `a: {{ null }}`, "omitempty"},
		{"no function is like it", `a: {{ frobnicate .a }}`, "those of text/template and sprig"},
		{"a field before a function", `a: {{ .a upper }}`, "begins with its function"},
		{"one argument too few", `a: {{ .a | replace "b" }}`, "replace takes 3 arguments and is given 2"},
		{"one argument too many", `a: {{ upper .a .b }}`, "upper takes 1 argument and is given 2"},
		{"a call that is no argument yet", `a: {{ upper trim .b }}`, "in parentheses"},
		{"any number, but not none", `a: {{ and }}`, "and takes at least 1 argument and is given 0"},
		{"a fallback without a value", `a: {{ .a | default }}`, "write `.spec.field | default VALUE`"},
		{"on a path that no upstream may take", `a: {{ if .a }}{{ lower }}{{ end }}`, "lower takes 1 argument"},
	} {
		_, err := Compile(c.template, Options{})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %s: got %v, want an error", c.reason, c.template, err)
		} else if !strings.Contains(err.Error(), c.want) || e.Fix == "" || e.Line != 1 {
			t.Errorf("%s: %s:\n%v\nwant a fix, and in it %s", c.reason, c.template, err, c.want)
		}
	}
}

func TestHolesSayWhereStructureEnters(t *testing.T) {
	tmpl := compiled(t, `{{ define "name" }}{{ .metadata.name }}-x{{ end -}}
{{ define "port" }}{{ .port }}{{ end -}}
# {{ .comment }}
metadata:
  name: {{ include "name" . | trunc 63 }}
  labels:
    {{- toYaml .labels | nindent 4 }}
    {{ .key }}: "{{ .quoted }}"
spec:
  {{- if .never }}
  replicas: {{ .replicas | default 1 }}
  {{- else }}
  image: {{ .registry }}/{{ .image }}
  {{- end }}
  port: {{ include "port" . }}
  env:
    {{- range .env }}
    - value: {{ .value | quote }}
    {{- end }}
  upper: {{ upper .x }}
  text: |
    {{ .block }} {{ "}}" }}
  {{ toYaml .a.b | indent 0 }}
`)
	var got []string
	for _, h := range tmpl.Holes() {
		flags := ""
		for _, f := range []struct {
			on   bool
			name string
		}{{h.Structure, " structure"}, {h.Key, " key"}, {h.String, " string"}} {
			if f.on {
				flags += f.name
			}
		}
		got = append(got, fmt.Sprintf("%d:%d %s at %s:%s", h.Line, h.Column, h.Text, h.Path, flags))
	}
	want := strings.Split(strings.TrimSpace(`
1:23 {{ .metadata.name }} at : string
2:23 {{ .port }} at .spec.port: structure
3:6 {{ .comment }} at : string
5:12 {{ include "name" . | trunc 63 }} at .metadata.name: string
7:9 {{- toYaml .labels | nindent 4 }} at .metadata.labels: structure
8:8 {{ .key }} at .metadata.labels: key string
8:21 {{ .quoted }} at .metadata.labels[*]: string
11:16 {{ .replicas | default 1 }} at .spec.replicas: structure
13:13 {{ .registry }} at .spec.image: string
13:29 {{ .image }} at .spec.image: string
18:17 {{ .value | quote }} at .spec.env[].value: string
20:13 {{ upper .x }} at .spec.upper: string
22:8 {{ .block }} at .spec.text: string
22:21 {{ "}}" }} at .spec.text: string
23:6 {{ toYaml .a.b | indent 0 }} at .spec: structure`), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s", diff)
	}
}

func TestReadsStatus(t *testing.T) {
	for _, c := range []struct {
		template string
		want     bool
		reason   string
	}{
		{"a: {{ .spec.x }}", false, "another field"},
		{"a: {{ .status.x }}", true, "the field"},
		{"a: {{ $.status.x }}", true, "by the root variable"},
		{"a: {{ toYaml . }}", true, "the whole"},
		{"a: {{ $x := . }}{{ $x.spec }}", true, "the whole under another name"},
		{"a: {{ (index . \"spec\") }}", true, "cannot be told"},
		{"a:{{ range .spec.l }} {{ . }} {{ .status }}{{ end }}", false, "another dot"},
		{"a:{{ with .spec }} {{ . }} {{ $.spec }}{{ end }}", false, "another dot"},
		{"a:{{ with .spec }} {{ . }} {{ $.status }}{{ end }}", true, "the root stays"},
		{"a:{{ with .spec }}{{ else }}{{ .status }}{{ end }}", true, "dot is the root in else"},
		{"{{ define \"n\" }}{{ .metadata.name }}{{ end }}a: {{ include \"n\" . }}", false, "handed over, not read"},
		{"{{ define \"n\" }}{{ .status.x }}{{ end }}a: {{ template \"n\" $ }}", true, "read by what it is handed to"},
		{"{{ define \"n\" }}{{ .status.x }}{{ end }}a: {{ include \"n\" .spec }}", false, "another dot"},
		{"{{ define \"n\" }}{{ .status.x }}{{ end }}a: {{ include .spec.n . }}", true, "a computed name"},
		{"{{ define \"n\" }}{{ . }}{{ end }}a: {{ include \"n\" (dict \"x\" .) }}", true, "handed to a function"},
		{"{{ define \"n\" }}{{ template \"n\" . }}{{ end }}a: {{ include \"n\" . }}", false, "recursion ends"},
		{"{{ if .status }}{{ end }}a: 1", true, "in a condition"},
		{"a: {{ (.status).x }}", true, "in parentheses"},
	} {
		if got := compiled(t, c.template).ReadsStatus(); got != c.want {
			t.Errorf("%s (%s): %v", c.template, c.reason, got)
		}
	}
}

func TestParamsAndInputs(t *testing.T) {
	tmpl := compiled(t, `{{ define "x" }}{{ param "b" }}{{ end }}a: {{ param "a" }}{{ (input "i").data.x | quote }}{{ include "x" . }}`)
	if diff := cmp.Diff([][]string{{"a", "b"}, {"i"}}, [][]string{tmpl.Params(), tmpl.Inputs()}); diff != "" {
		t.Error(diff)
	}
}

func TestInputReads(t *testing.T) {
	for _, c := range []struct {
		template string
		paths    [][]string
		whole    bool
		computes bool
		reason   string
	}{
		{`a: {{ (input "i").data.x }}`, [][]string{{"data", "x"}}, false, false, "a field"},
		{`a: {{ (input "i").data | toJson | sha256sum }}`, [][]string{{"data"}}, false, false, "a field that is piped on"},
		{`a: {{ with (input "i").data }}{{ .x }}{{ end }}`, [][]string{{"data"}}, false, false, "what with reads lies below the field"},
		{`a: {{ range $k, $v := (input "i").data }}{{ $k }}{{ end }}`, [][]string{{"data"}}, false, false, "as with range"},
		{`a: {{ input "i" | toJson }}`, [][]string{nil}, true, false, "the whole"},
		{`a: {{ with input "i" }}{{ .data }}{{ end }}`, [][]string{nil}, true, false, "the whole as dot"},
		{`{{ $i := input "i" }}a: {{ $i.data }}`, [][]string{nil}, true, false, "the whole as a variable"},
		{`a: {{ "i" | input | toJson }}`, nil, true, true, "a piped name may be any"},
		{`a: {{ (input .spec.n).data }}`, nil, true, true, "a computed name may be any"},
		{`a: {{ (input "other").data }}`, nil, false, false, "another input"},
	} {
		tmpl := compiled(t, c.template)
		paths, whole := tmpl.InputReads("i")
		if diff := cmp.Diff(c.paths, paths); diff != "" || whole != c.whole || tmpl.ComputesInput() != c.computes {
			t.Errorf("%s (%s): whole %v, computes %v, paths %s", c.template, c.reason, whole, tmpl.ComputesInput(), diff)
		}
	}
}

// TestInputReadsOfLists: for an input that is a list, the fields of its objects that a range reads are returned.
func TestInputReadsOfLists(t *testing.T) {
	name, url := []string{"metadata", "name"}, []string{"spec", "url"}
	for _, c := range []struct {
		template string
		paths    [][]string
		whole    bool
		reason   string
	}{
		{`a: {{ range input "l" }}{{ .spec.url }}{{ end }}`, [][]string{name, url}, false, "a field of each"},
		{`a: {{ range $m := input "l" }}{{ $m.spec.url }}{{ end }}`, [][]string{name, url}, false, "of a variable"},
		{`a: {{ range $i, $m := (input "l") }}{{ $i }}{{ $m.spec.url }}{{ end }}`, [][]string{name, url}, false, "of the second variable"},
		{`a: {{ range input "l" }}{{ range .spec.list }}{{ .url }}{{ end }}{{ end }}`, [][]string{name, {"spec", "list"}}, false, "what lies below a field"},
		{`a: {{ range input "l" }}{{ with .spec }}{{ .url }}{{ end }}{{ end }}`, [][]string{name, {"spec"}}, false, "as a with does"},
		{`a: {{ range input "l" }}{{ $.spec.url }}{{ end }}`, [][]string{name}, false, "the upstream's field"},
		{`a: {{ range $m := input "l" }}{{ range .spec.list }}{{ $m.spec.url }}{{ end }}{{ end }}`,
			[][]string{name, {"spec", "list"}, url}, false, "a variable in a range within"},
		{`a: {{ len (input "l") }}`, [][]string{name}, false, "how many"},
		{`a: {{ range input "l" }}{{ toJson . }}{{ end }}`, [][]string{name, nil}, true, "each as a whole"},
		{`a: {{ range $m := input "l" }}{{ $m | toJson }}{{ end }}`, [][]string{name, {}}, true, "a variable as a whole"},
		{`{{ define "x" }}{{ .spec.url }}{{ end }}a: {{ range input "l" }}{{ include "x" . }}{{ end }}`, [][]string{name, nil}, true, "handed to a template"},
		{`a: {{ range (input "l" | default list) }}{{ .spec.url }}{{ end }}`, [][]string{nil}, true, "what a function gives"},
		{`{{ $l := input "l" }}a: {{ range $l }}{{ .spec.url }}{{ end }}`, [][]string{nil}, true, "the list as a variable"},
		{`a: {{ (index (input "l") 0).spec.url }}`, [][]string{nil}, true, "one of them"},
		{`a: {{ range input "m" }}{{ .spec.url }}{{ end }}`, nil, false, "an input that is no list"},
	} {
		tmpl, err := Compile(c.template, Options{Lists: []string{"l"}})
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		paths, whole := tmpl.InputReads("l")
		if diff := cmp.Diff(c.paths, paths); diff != "" || whole != c.whole {
			t.Errorf("%s (%s): whole %v, paths %s", c.template, c.reason, whole, diff)
		}
		if paths, whole := tmpl.InputReads("m"); strings.Contains(c.reason, "no list") && !whole {
			t.Errorf("%s: of an input that is no list %v", c.template, paths)
		}
	}
}

func TestDelimiters(t *testing.T) {
	if _, err := Compile("c: [[[ .v ]]]\n", Options{Left: "[[", Right: "]]"}); err == nil {
		t.Error("the third bracket is the template's, not YAML's: a space is needed")
	}
	tmpl, err := Compile("a: [[ .v ]]\nb: \"{{ .v }}\"\nc: [ [[ .v ]]]\n[[- if false ]]x[[ end ]]", Options{Left: "[[", Right: "]]"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := tmpl.Execute(Data{Upstream: m{"v": int64(1)}})
	if diff := cmp.Diff(m{"a": int64(1), "b": "{{ .v }}", "c": l{int64(1)}}, doc); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got := tmpl.Holes()[0].Text; got != "[[ .v ]]" {
		t.Errorf("the hole's text is %q", got)
	}
}

func TestMarksInTheTemplate(t *testing.T) {
	for _, text := range []string{
		"a: \uE000", "a: \uE001", "a: \"\\uE000v0\\uE001\"", "a: \"\\ue001\"", "a: \"\\U0000E000\"", "# \uE000\na: 1",
		"{{ if .x }}a: \"\\uE000\"{{ end }}",
		"a: \xee{{ if true }}\x80\x80{{ end }}v0", "a: \xff",
	} {
		_, err := Compile(text, Options{})
		var e *Error
		if !errors.As(err, &e) || e.Line != 1 || !strings.Contains(e.Problem, "U+E000") && !strings.Contains(e.Problem, "UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
	pieces := compiled(t, "a: {{ .v }}\nb: \"\\uE0{{ if true }}00v0\\uE0{{ end }}{{ if true }}01{{ end }}\"")
	if doc, err := pieces.Execute(Data{Upstream: m{"v": "secret"}}); err == nil {
		t.Errorf("an escape put together from pieces passes: %v", doc)
	}
	doc, err := compiled(t, `a: {{ "\ue000v0\ue001" }}`).Execute(Data{})
	if err != nil || doc["a"] != "\uE000v0\uE001" {
		t.Errorf("a constant is a value: %v, %v", doc, err)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ template, want, err, reason string }{
		{"shop", "shop", "", "a constant"},
		{"", "", "", "an empty constant"},
		{"{{ .metadata.name }}-{{ .port }}", "shop-8080", "", "text with values"},
		{"a: [{{ .word }}", "a: [w", "", "there is no YAML in it"},
		{"{{ .text }}", "a\nb\n", "", "as it is"},
		{"{{ .map | toJson }}{{ .version | quote }}", `{"a":2,"b":"1.10"}"1.10"`, "", "the text that Helm prints"},
		{"{{ toYaml .map | nindent 2 }}", "\n  a: 2\n  b: \"1.10\"", "", "the text that Helm prints"},
		{"{{ .nope }}", "", "line 1: .nope is not set", "never <no value>"},
		{"x\n{{ .map }}", "", "line 2: .map: a map cannot be used inside text", "say toJson"},
		{"{{ .nope | omitempty }}", "", "a text has none", "nothing to remove"},
		{"{{ now }}", "", "not available", "as in a document"},
		{"{{ if }}", "", "line 1: missing value for if", "the template's own syntax"},
	} {
		text, err := CompileText(c.template, Options{})
		got := ""
		if err == nil {
			got, err = text.Execute(rowData(t))
		}
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q (%s): %q, %v", c.template, c.reason, got, err)
		}
		if text == nil {
			continue
		}
		constant, ok := text.Constant()
		if isConstant := !strings.Contains(c.template, "{{"); ok != isConstant || ok && constant != c.want {
			t.Errorf("%q: constant %q, %v", c.template, constant, ok)
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	tmpl := compiled(t, "a: {{ keys .m | join \",\" }}\nb: {{ toJson .m | quote }}\nc: |\n  {{- toYaml .m | nindent 2 }}\nd: \"{{ range "+
		"$k, $v := .m }}{{ $k }}{{ end }}\"\ne: {{ values .m | join \",\" }}")
	many := m{}
	for i := range 100 {
		many[fmt.Sprint("k", i*7919%1000)] = int64(i)
	}
	var first m
	for range 20 {
		doc, err := tmpl.Execute(Data{Upstream: m{"m": many}})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = doc
		}
		if diff := cmp.Diff(first, doc); diff != "" {
			t.Fatal(diff)
		}
	}
}
