package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
)

func TestDelimiters(t *testing.T) {
	o := Options{Delimiters: parsing.Delimiters{Left: "[[", Right: "]]"}}
	if _, err := Compile("c: [[[ .v ]]]\n", o); err == nil {
		t.Error("the third bracket is the template's, not YAML's: a space is needed")
	}
	tmpl, err := Compile("a: [[ .v ]]\nb: \"{{ .v }}\"\nc: [ [[ .v ]]]\n[[- if false ]]x[[ end ]]", o)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := tmpl.Execute(program.Data{Upstream: m{"v": int64(1)}})
	if diff := cmp.Diff(m{"a": int64(1), "b": "{{ .v }}", "c": l{int64(1)}}, doc); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got := tmpl.Holes[0].Text; got != "[[ .v ]]" {
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
		var e *parsing.Error
		if !errors.As(err, &e) || e.Line != 1 || !strings.Contains(e.Problem, "U+E000") && !strings.Contains(e.Problem, "UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
	pieces := compiled(t, "a: {{ .v }}\nb: \"\\uE0{{ if true }}00v0\\uE0{{ end }}{{ if true }}01{{ end }}\"")
	if doc, err := pieces.Execute(program.Data{Upstream: m{"v": "secret"}}); err == nil {
		t.Errorf("an escape put together from pieces passes: %v", doc)
	}
	doc, err := compiled(t, `a: {{ "\ue000v0\ue001" }}`).Execute(program.Data{})
	if err != nil || doc["a"] != "\uE000v0\uE001" {
		t.Errorf("a constant is a value: %v, %v", doc, err)
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
		doc, err := tmpl.Execute(program.Data{Upstream: m{"m": many}})
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
