package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// specialStrings are strings with a meaning in YAML, in templates or in placeholders.
var specialStrings = []string{
	"", "x", "1.10", "true", "null", "~", "0777", "1e3", "0x10", "1_000", "on", "2026-11-20", ".inf", "9007199254740993",
	"{{ .x }}", "{{ end }}", "\n---\nkind: Secret", "---", "...", "😀", "\x00", "a\x00b", "\uE000", "\uE001", "\uE000v0\uE001",
	"\uE000m0\uE001:", "- \uE000l0\uE001", "\\uE000v0\\uE001", "<<", "*a", "&a", "!!int 1", "!t", "# x", "a # x", ": ", "a: b", "- ", "- a",
	"? ", "%", "%YAML 1.1", "@",
	"`", "'", "\"", "\\", "\\n", "|", ">", "|-", "{", "}", "{a: b}", "[", "]", "[a]", ",", "\t", "\ta", "a\t", "\r", "\r\n", "a\r\nb",
	"\u0085", "\u2028", "\u2029", "\uFEFF",
	"\uFEFFa", "\xff", "a\xc3", "\n", "\n\n", "a\n", "a\n\n", "\na", " a", "a ", "  a\n b", "a\n\n  b\n", "a: |\n  b", "%!s(int=1)", "%d",
	"$x", "</script>", "__proto__",
}

// holeTemplates are templates with a string in every kind of place. The result for any string must be the result for
// the word HOLE with the word replaced: the same structure, and the string unchanged.
var holeTemplates = map[string]string{
	"plain":             "a: {{ .v }}",
	"plain, trimmed":    "a: {{/* */ -}}   {{ .v -}}  \n",
	"plain with text":   "a: b{{ .v }}c",
	"plain twice":       "a: {{ .v }} {{ .v }}",
	"next to a colon":   "a: {{ .v }}:{{ .v }}",
	"next to a hash":    "a: {{ .v }}#{{ .v }} # {{ .v }}",
	"next to a dash":    "a: -{{ .v }}",
	"double quoted":     "a: \"{{ .v }}\"",
	"with escapes":      "a: \"\\t{{ .v }}\\n\\\\{{ .v }}\\\"\"",
	"single quoted":     "a: '{{ .v }}'",
	"with quotes":       "a: '''{{ .v }}'' '",
	"block":             "a: |\n  {{ .v }}\nb: 1",
	"block stripped":    "a: |-\n  {{ .v }}\nb: 1",
	"block kept":        "a: |+\n  {{ .v }}\n\nb: 1",
	"block, indented":   "a: |2\n    {{ .v }}\n  x{{ .v }}y\nb: 1",
	"block, last":       "a: |\n  {{ .v }}",
	"folded":            "a: >\n  {{ .v }}\n  x {{ .v }}\n\n  {{ .v }}\nb: 1",
	"folded stripped":   "a: >-\n  {{ .v }}\nb: 1",
	"several lines":     "a: {{ .v }}\n  {{ .v }}\nb: 1",
	"flow map":          "a: {b: {{ .v }}, c: [{{ .v }}, \"{{ .v }}\"]}",
	"flow at the edge":  "a: {b: {{ .v }}}",
	"key":               "b:\n  {{ .v }}: 1",
	"key, quoted":       "b:\n  \"{{ .v }}\": 1",
	"key, explicit":     "b:\n  ? {{ .v }}\n  : {{ .v }}",
	"key in a flow":     "b: { {{ .v }}: 1 }",
	"key with text":     "b:\n  x/{{ .v }}: {{ .v }}",
	"root key":          "{{ .v }}: 1",
	"comment":           "# {{ .v }}\na: 1 # {{ .v }}\n# {{ .v }}",
	"item":              "a:\n  - {{ .v }}\n  - x: {{ .v }}\n  -   - {{ .v }}",
	"range":             "a:\n{{- range .l }}\n  - {{ . }}\n  - \"{{ . }}\"\n{{- end }}",
	"range with index":  "{{ range $i, $x := .l }}k{{ $i }}: {{ $x }}\n{{ end }}",
	"if":                "{{ if .l }}a: {{ .v }}{{ else }}b: {{ .v }}{{ end }}",
	"with":              "{{ with .m }}a: {{ .v }}\nb: {{ $.v }}{{ end }}",
	"variable":          "{{ $x := .v }}a: {{ $x }}{{ $x = .v }}\nb: {{ $x }}",
	"define":            "{{ define \"x\" }}{{ .v }}{{ end }}a: {{ template \"x\" . }}",
	"block action":      "a: {{ block \"x\" . }}{{ .v }}{{ end }}",
	"include":           "{{ define \"x\" }}b: {{ .v }}\nc: \"{{ .v }}\"{{ end }}a:\n  {{- include \"x\" . | nindent 2 }}",
	"include, whole":    "{{ define \"x\" }}{{ .v }}{{ end }}a: {{ include \"x\" . }}",
	"include as text":   "{{ define \"x\" }}p{{ .v }}s{{ end }}a: {{ include \"x\" . | trunc -1000000000 }}",
	"include in quotes": "{{ define \"x\" }}{{ .v }}{{ end }}a: \"{{ include \"x\" . }}\"",
	"nindent in block":  "a: |-\n  {{- .v | nindent 2 }}\nb: 1",
	"indent in block":   "a: |\n{{ .v | indent 2 }}\nb: 1",
	"toYaml":            "a: {{ toYaml .v }}",
	"toYaml below":      "a:\n  {{- toYaml .v | nindent 2 }}",
	"toYaml of a map":   "a:\n  {{- toYaml .m | nindent 2 }}",
	"toYaml of a list":  "a:\n  {{- toYaml .l | nindent 2 }}",
	"toJson":            "a: {{ .v | toJson }}\nb: {{ .m | toJson }}",
	"quote":             "a: {{ .v | quote }}\nb: {{ .v | squote }}",
	"map":               "a: {{ .m }}\nb: {{ .l }}",
	"string tag":        "a: !!str {{ .v }}",
	"alias":             "a: &x {b: {{ .v }}}\nc: *x",
	"printf":            "a: {{ printf \"%s-%v\" .v .v }}",
	"function":          "a: {{ toString .v | trunc -1000000000 | printf \"%s\" }}",
	"dict":              "a: {{ dict \"k\" .v | omitempty }}",
}

func compiled(tb testing.TB, text string) *Template {
	tb.Helper()
	t, err := Compile(text, Options{})
	if err != nil {
		tb.Fatalf("compiling %q: %v", text, err)
	}
	return t
}

// withValue returns an upstream that holds v in every shape that the templates read.
func withValue(v any) program.Data {
	return program.Data{Upstream: map[string]any{"v": v, "l": []any{v}, "m": map[string]any{"v": v}}, Budget: patient()}
}

// patient is a Budget with much time: its limit is of the wall clock, and the machine may be busy.
func patient() *values.Budget { return values.NewBudget(values.Limits{Time: time.Minute}, nil) }

// substitute puts s for the word HOLE in every string and key.
func substitute(v any, s string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "HOLE", s)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = substitute(v[i], s)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[strings.ReplaceAll(key, "HOLE", s)] = substitute(value, s)
		}
		return out
	}
	return v
}

func FuzzHoles(f *testing.F) {
	for _, s := range specialStrings {
		f.Add(s, int64(1<<53+1), math.Copysign(0, -1))
	}
	f.Add(strings.Repeat("0123456789abcde ", 1<<12), int64(math.MinInt64), 1e300)
	type pair struct {
		t        *Template
		harmless map[string]any
	}
	templates := map[string]pair{}
	for name, text := range holeTemplates {
		t := compiled(f, text)
		doc, err := t.Execute(withValue("HOLE"))
		if err != nil {
			f.Fatalf("%s: %v", name, err)
		}
		templates[name] = pair{t, doc}
	}
	brittle := map[string]*Template{}
	for name, text := range breaking {
		brittle[name] = compiled(f, text)
	}
	f.Fuzz(func(t *testing.T, s string, n int64, float float64) {
		if len(s) > 1<<17 {
			return // several of them make a document that is too large
		}
		for name, p := range templates {
			got, err := p.t.Execute(withValue(s))
			if err != nil {
				t.Errorf("%s: %q: %v", name, clip(s), err)
				continue
			}
			if want := substitute(p.harmless, s); !reflect.DeepEqual(want, any(got)) {
				t.Errorf("%s: %q changed the document:\ngot  %q\nwant %q", name, clip(s), clip(got), clip(want))
			}
		}
		fuzzTypes(t, s, n, float)
		fuzzBreaking(t, brittle, s)
	})
}

var (
	wholeValues = compileOnce("a: {{ .v }}\nb: [{{ .v }}]\nc: {{ toYaml .v }}\nd: {{ .v | toJson }}\n{{ if true }}e: {{ .v }}{{ end }}")
	inText      = compileOnce("a: \"{{ .v }}\"")
	spliced     = compileOnce("a:\n  fixed: 1\n  {{- toYaml .v | nindent 2 }}")
)

func compileOnce(text string) *Template {
	t, err := Compile(text, Options{})
	if err != nil {
		panic(err)
	}
	return t
}

// fuzzTypes puts numbers, maps and lists into whole holes, where they must stay as they are, and into text, where
// only numbers are allowed.
func fuzzTypes(t *testing.T, s string, n int64, float float64) {
	structure := map[string]any{s: n, s + "k": []any{s, float, nil, true, map[string]any{s: s}}}
	list := []any{s, n, float, structure}
	for _, v := range []any{n, float, true, structure, list} {
		got, err := wholeValues.Execute(withValue(v))
		if math.IsNaN(float) || math.IsInf(float, 0) {
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", clip(v), err)
			continue
		}
		want := map[string]any{"a": v, "b": []any{v}, "c": v, "d": v, "e": v}
		if !cmp.Equal(want, got) {
			t.Errorf("a value changed: %s", cmp.Diff(want, got))
		}
		_, err = inText.ExecuteText(withValue(v))
		if structured := values.IsStructure(v); structured != (err != nil) {
			t.Errorf("%v in text: %v", clip(v), err)
		}
	}
	if s != "fixed" && s+"k" != "fixed" && !math.IsNaN(float) && !math.IsInf(float, 0) {
		got, err := spliced.Execute(withValue(structure))
		want := map[string]any{"fixed": int64(1)}
		for key, value := range structure {
			want[key] = value
		}
		if err != nil || !cmp.Equal(map[string]any{"a": want}, got) {
			t.Errorf("splicing %v: %v, %v", clip(structure), got, err)
		}
	}
}

// breaking are templates in which a value with several lines may be refused, but must not change the shape.
var breaking = map[string]string{
	"comment":          "a:\n# {{ .v | indent 2 }}\nb: 1",
	"comment at a key": "a: # {{ .v | indent 2 }}\n  b: 1",
	"short block":      "a: |\n      {{ .v | indent 4 }}\nb: 1",
	"nested block":     "a:\n  b: |\n      {{ .v | indent 2 }}\n  c:\nd: 1",
	"key":              "{{ .v | indent 0 }}: 1",
	"key below":        "a:\n  {{- .v | nindent 2 }}: 1",
	"item":             "a:\n  -\n    {{- .v | nindent 4 }}\nb: 1",
	"empty item":       "a:\n  -\n# {{ .v | indent 2 }}\n  - 1",
	"flow":             "a: [1, {{ .v | nindent 2 }}]",
	"flow comment":     "a: [1, # {{ .v | indent 2 }}\n  2]",
	"plain":            "a:\n  {{- .v | nindent 2 }}",
	"quoted":           "a: \"{{ .v | indent 2 }}\"",
	"folded":           "a: >\n  {{- .v | nindent 2 }}\nb: 1",
	"toYaml":           "a:\n  x: 1\n  {{- toYaml .v | nindent 2 }}",
	"include":          "{{ define \"x\" }}{{ .v | indent 0 }}{{ end }}a:\n# {{ include \"x\" . | indent 2 }}\nb: 1",
}

// shape returns what a value looks like, strings aside; keys count by their number.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		var members []any
		for _, key := range values.SortedKeys(v) {
			members = append(members, shape(v[key]))
		}
		return members
	case []any:
		out := []any{"list"}
		for _, item := range v {
			out = append(out, shape(item))
		}
		return out
	case string:
		return "string"
	}
	return v
}

// fuzzBreaking: an error or the harmless value's shape.
func fuzzBreaking(t *testing.T, templates map[string]*Template, s string) {
	for name, tmpl := range templates {
		want, err := tmpl.Execute(withValue("x"))
		if err != nil {
			continue
		}
		if got, err := tmpl.Execute(withValue(s)); err == nil && !reflect.DeepEqual(shape(want), shape(got)) {
			t.Errorf("%s: %q changed the shape:\ngot  %q\nlike %q", name, clip(s), clip(got), want)
		}
	}
}

// clip keeps a failure readable when a value is very long.
func clip(v any) any {
	text, err := json.Marshal(v)
	if err != nil || len(text) < 2000 {
		return v
	}
	return string(text[:2000]) + "…"
}

// FuzzAuthorYAML compares what the author's own YAML becomes with what kubectl makes of it.
func FuzzAuthorYAML(f *testing.F) {
	for _, s := range specialStrings {
		f.Add("a: " + s)
		f.Add("? " + s + "\n: 1")
	}
	for _, s := range authorScalars {
		f.Add("a: " + s + "\n" + s + ": b\nc: [" + s + "]\nd: {" + s + ": " + s + "}\n")
	}
	f.Add("a: &x {b: 1}\nc: *x\nd: |+\n  x\n\ne: >-\n  a\n  b\n# c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "{{") {
			return // a template, not plain YAML
		}
		compareWithKubectl(t, text)
	})
}

func compareWithKubectl(t *testing.T, text string) {
	t.Helper()
	want, refErr := asKubectl(text)
	tmpl, err := Compile(text, Options{})
	var got map[string]any
	if err == nil {
		got, err = tmpl.Execute(program.Data{})
	}
	if err != nil {
		return // stricter is fine: a list, two documents, a merge key
	}
	if refErr != nil {
		t.Fatalf("%q is %v here, kubectl says %v", text, got, refErr)
	}
	if !cmp.Equal(want, got) {
		t.Fatalf("%q is read differently:\n%s", text, cmp.Diff(want, got))
	}
}

// asKubectl reads YAML on kubectl's way: sigs.k8s.io/yaml to JSON, then integers as int64.
func asKubectl(text string) (map[string]any, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	b := values.NewBudget(values.Limits{Bytes: math.MaxInt}, nil)
	copied, err := values.Copy(b, out)
	if err != nil {
		return nil, err
	}
	m, ok := copied.(map[string]any)
	if !ok {
		return nil, errors.New("not a mapping")
	}
	return m, nil
}

// authorScalars are scalars whose reading differs between YAML versions and libraries.
var authorScalars = []string{
	"on", "off", "yes", "no", "y", "n", "Y", "N", "On", "TRUE", "true", "null", "~", "Null", "0644", "0o644", "0x1F", "0b101", "-0b101", "08",
	"09.5", "1_000", "_1", "1__0",
	"2026-11-20", "2026-11-20T10:00:00Z", "2026-1-2 3:4:5", "2026-13-45", "1e3", "1E3", "1e+3", "1.0", "1.5", "-1.5", ".5", "5.", "+5", "+.5",
	"-0", "-0.0", "0.0", "1e400", "1e-400", "1e21", "1e20", "1e-7",
	".inf", "-.inf", ".nan", "12:30:45", "1:30", "18446744073709551615", "18446744073709551616", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "-9223372036854775809",
	"9007199254740993", "\"1\"", "'1'", "!!str 1", "!!int \"5\"", "!!float 1", "!!bool yes", "!!binary aGk=", "!!timestamp 2026-11-20",
	"!foo 5", "! 5", "0x", "0b2", "1e", "e1", "--1", "+-1", "0_1", "0x_1", "00", "007", "0.1.2", "1,000", "1 2", "a b", "<<x", "=", "NaN",
	"Infinity", "inf", "0X1f", "0B1", "0O7", "1.e3", "1.5e-3", ".e3", "- x",
}

func TestAuthorScalarsReadAsKubectlDoes(t *testing.T) {
	for _, s := range authorScalars {
		for _, text := range []string{"a: " + s, "a: [" + s + "]", "a:\n  - " + s, "\"a\": {b: " + s + "}", s + ": a", "? " + s + "\n: a"} {
			compareWithKubectl(t, text)
			want, refErr := asKubectl(text)
			tmpl, err := Compile(text, Options{})
			if refErr == nil && err != nil {
				t.Errorf("%q: kubectl reads %v, here it is an error: %v", text, want, err)
			}
			_ = tmpl
		}
	}
}
