package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// row is one rule: a template for the upstream below, and its result.
type row struct {
	name, template string
	want           map[string]any
	err            string // part of the error, of compiling or of executing
	reason         string
}

const rowUpstream = `
metadata: {name: shop, namespace: apps}
zero: 0
flag: false
empty: ""
none: null
emptyMap: {}
emptyList: []
replicas: 3
big: 9007199254740993
float: 2.5
version: "1.10"
text: "a\nb\n"
word: w
tag: "'\"<&>"
map: {b: "1.10", a: 2}
list: [x, 2]
items: [{n: 1}, {n: 2}]
port: 8080
`

func rowData(t testing.TB) Data {
	return Data{
		Upstream: parseObject(t, rowUpstream),
		Params:   map[string]any{"registry": "r.example.com"},
		Inputs:   map[string]any{"settings": map[string]any{"data": map[string]any{"k": "v"}}, "absent": nil},
	}
}

func runRows(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if r.reason == "" {
				t.Error("the row gives no reason")
			}
			doc, err := renderOnce(t, r.template)
			if r.err != "" {
				if err == nil || !strings.Contains(err.Error(), r.err) {
					t.Fatalf("want an error with %q, got %v, %v", r.err, doc, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.want, doc); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
}

func renderOnce(t testing.TB, text string) (map[string]any, error) {
	tmpl, err := Compile(text, Options{})
	if err != nil {
		return nil, err
	}
	return tmpl.Execute(rowData(t))
}

type m = map[string]any
type l = []any

func TestMissingValues(t *testing.T) {
	runRows(t, []row{
		{name: "in a hole", template: "b: 1\na: {{ .spec.tag }}", err: "line 2: .spec.tag is not set", reason: "never <no value>"},
		{name: "null", template: "a: {{ .none }}", err: ".none is not set", reason: "null is missing"},
		{name: "in quotes", template: "a: \"x{{ .nope }}\"", err: ".nope is not set", reason: "text has no <no value> either"},
		{name: "as a key", template: "{{ .nope }}: 1", err: ".nope is not set", reason: "keys too"},
		{name: "variable", template: "{{ $x := .nope }}a: {{ $x }}", err: "$x is not set", reason: "a variable holds null until it is printed"},
		{name: "parameter", template: "a: {{ param \"nope\" }}", err: `param "nope" is not set`, reason: "named as written"},
		{name: "input", template: "a: {{ (input \"absent\").data.k }}", err: "is not set", reason: "an input that may be missing is null"},
		{name: "in a comment", template: "a: 1 # {{ .nope }}", want: m{"a": int64(1)}, reason: "a comment is nothing"},
		{name: "argument", template: "a: {{ upper .nope }}", err: ".nope is not set", reason: "a nil argument is an error, not an empty text"},
		{name: "second argument", template: "a: {{ printf \"%s-%s\" .word .nope }}", err: ".nope is not set",
			reason: "printf would print %!s(<nil>)"},
		{name: "piped", template: "a: {{ .nope | upper }}", err: ".nope is not set", reason: "the piped value is an argument"},
		{name: "piped through", template: "a: {{ index .map \"z\" | upper }}", err: `index .map "z" is not set`,
			reason: "a function's result is named by its call"},
		{name: "nested argument", template: "a: {{ printf \"%s\" (get .map \"a\" | toString | lower) }}", want: m{"a": "2"},
			reason: "parentheses work"},
		{name: "argument of an if", template: "{{ if gt .nope 1 }}a: 1{{ end }}", err: ".nope is not set", reason: "comparing null is no answer"},
		{name: "condition", template: "{{ if .nope }}a: 1{{ else }}b: 2{{ end }}", want: m{"b": int64(2)}, reason: "missing is false"},
		{name: "below missing", template: "{{ if .a.b.c }}a: 1{{ else }}b: {{ .a.b.c | default 5 }}{{ end }}", want: m{"b": int64(5)},
			reason: "a missing map has no fields"},
		{name: "below a string", template: "a: {{ .word.x }}", err: ".word.x cannot be read: .word, a string, has no field x",
			reason: "a typo must not pass as missing"},
		{name: "range over missing", template: "a:{{ range .nope }} x{{ else }} none{{ end }}", want: m{"a": "none"}, reason: "no items"},
		{name: "printf misfit", template: "a: {{ printf \"%d\" .word }}", err: "does not fit", reason: "%!d(string=w) must not be applied"},
		{name: "printf of percent", template: "a: {{ printf \"100%%!%s\" \"%!\" }}", want: m{"a": "100%!%!"},
			reason: "a value may hold what fmt prints for errors"},
		{name: "printf of a map", template: "a: {{ printf \"%v\" .map }}", err: "a map cannot be used inside text",
			reason: "Go would print map[k:v]"},
		{name: "equal to nothing", template: "a: {{ eq .nope \"x\" }}", want: m{"a": false}, reason: "eq can compare null"},
		{name: "required", template: "a: {{ required \"say which tag\" .nope }}", err: "line 1: say which tag", reason: "the author's message"},
		{name: "fail", template: "{{ if .word }}{{ fail \"not this\" }}{{ end }}a: 1", err: "not this", reason: "the author's message"},
	})
}

func TestDefaultAndOmitempty(t *testing.T) {
	runRows(t, []row{
		{name: "default", template: "a: [{{ .nope | default 1 }}, {{ .none | default 1 }}, {{ .empty | default 1 }}, {{ .emptyList | default " +
			"1 }}, {{ .emptyMap | default 1 }}]",
			want: m{"a": l{int64(1), int64(1), int64(1), int64(1), int64(1)}}, reason: "missing, null, \"\", [], {}"},
		{name: "not zero", template: "a: [{{ .zero | default 1 }}, {{ .flag | default true }}]", want: m{"a": l{int64(0), false}},
			reason: "sprig's would turn replicas: 0 into 1"},
		{name: "coalesce", template: "a: {{ coalesce .nope .empty .zero 1 }}", want: m{"a": int64(0)}, reason: "as default"},
		{name: "value", template: "a: {{ .nope | omitempty }}\nb: {{ .none | omitempty }}\nc: {{ .empty | omitempty }}\nd: {{ .emptyMap | " +
			"omitempty }}\ne: {{ .emptyList | omitempty }}\nf: 1",
			want: m{"f": int64(1)}, reason: "the key goes with its value"},
		{name: "zero stays", template: "a: {{ .zero | omitempty }}\nb: {{ .flag | omitempty }}", want: m{"a": int64(0), "b": false},
			reason: "0 and false are values"},
		{name: "item", template: "a: [1, {{ .nope | omitempty }}, {{ .word | omitempty }}]", want: m{"a": l{int64(1), "w"}},
			reason: "the item goes"},
		{name: "key", template: "a:\n  {{ .empty | omitempty }}: 1\n  {{ .word | omitempty }}: 2", want: m{"a": m{"w": int64(2)}},
			reason: "the entry goes with its key"},
		{name: "quoted", template: "a: \"{{ .empty | omitempty }}\"\nb: 1", want: m{"b": int64(1)},
			reason: "quoted it is still the whole scalar"},
		{name: "part of text", template: "a: x{{ .empty | omitempty }}", err: "omitempty must be the whole value",
			reason: "there is nothing to remove"},
		{name: "with quote", template: "a: {{ .nope | quote | omitempty }}\nb: {{ .port | omitempty | quote }}", want: m{"b": "8080"},
			reason: "either order"},
		{name: "before a splice",
			template: "a:\n  {{- .emptyMap | omitempty | toYaml | nindent 2 }}\nb:\n  {{- .map | omitempty | toYaml | nindent 2 }}",
			want:     m{"b": m{"a": int64(2), "b": "1.10"}}, reason: "an empty map removes the key it would stand under"},
		{name: "before a splice among others",
			template: "a:\n  x: 1\n  {{- .nope | omitempty | toYaml | nindent 2 }}\nb:\n  - 1\n  {{- .nope | omitempty | toYaml | nindent 2 " +
				"}}\nc:\n  {{- .emptyList | omitempty | toYaml | nindent 2 }}", want: m{"a": m{"x": int64(1)}, "b": l{int64(1)}},
			reason: "it adds nothing, whether entries or items stand there"},
		{name: "before a splice in two lists",
			template: "a:\n  - 1\n  {{- .nope | omitempty | toYaml | nindent 2 }}\nb:\n  - 1\n  {{- .nope | omitempty | toYaml | nindent 2 }}",
			want:     m{"a": l{int64(1)}, "b": l{int64(1)}}, reason: "several at once"},
		{name: "not at the end", template: "a: {{ .nope | omitempty | upper }}", err: "omitempty works only at the end",
			reason: "it is no function of values"},
		{name: "in a condition", template: "{{ if omitempty .a }}a: 1{{ end }}", err: "omitempty works only at the end",
			reason: "it is no function of values"},
	})
}

func TestYAMLAtTheEnd(t *testing.T) {
	runRows(t, []row{
		{name: "map", template: "a:\n  x: 1\n  {{- toYaml .map | nindent 2 }}\n  z: 2",
			want: m{"a": m{"x": int64(1), "a": int64(2), "b": "1.10", "z": int64(2)}}, reason: "a splice of entries"},
		{name: "list", template: "a:\n  - 1\n  {{- toYaml .list | nindent 2 }}\n  - 3", want: m{"a": l{int64(1), "x", int64(2), int64(3)}},
			reason: "a splice of items"},
		{name: "indent", template: "a:\n{{ toYaml .map | indent 2 }}\nb:\n{{ indent 2 (toYaml .list) }}",
			want: m{"a": m{"a": int64(2), "b": "1.10"}, "b": l{"x", int64(2)}}, reason: "indent at the line's start; also as a function of it"},
		{name: "trim", template: "a:\n  {{ .map | toYaml | trim | nindent 2 | trim }}", want: m{"a": m{"a": int64(2), "b": "1.10"}},
			reason: "trim moves the placeholder only"},
		{name: "no layout", template: "a:\n  {{ toYaml .map }}\n{{ toYaml .emptyMap }}", want: m{"a": m{"a": int64(2), "b": "1.10"}},
			reason: "a blank line takes entries"},
		{name: "after a colon", template: "a: {{ toYaml .map }}\nb: {{ toYaml .list }}\nc: {{ toYaml .version }}",
			want: m{"a": m{"a": int64(2), "b": "1.10"}, "b": l{"x", int64(2)}, "c": "1.10"}, reason: "the whole value"},
		{name: "empty map", template: "a:\n  {{- toYaml .emptyMap | nindent 2 }}\nb:\n  {{- toYaml .emptyList | nindent 2 }}",
			want: m{"a": m{}, "b": l{}}, reason: "alone and empty"},
		{name: "empty among others", template: "a:\n  x: 1\n  {{- toYaml .emptyMap | nindent 2 }}", want: m{"a": m{"x": int64(1)}},
			reason: "nothing to add"},
		{name: "item", template: "a:\n  - {{- toYaml .map | nindent 4 }}\n  - {{ toYaml .map }}",
			want: m{"a": l{m{"a": int64(2), "b": "1.10"}, m{"a": int64(2), "b": "1.10"}}}, reason: "entries of an item"},
		{name: "twice", template: "a:\n  b: 1\n  {{- toYaml .map | nindent 2 }}", err: `.map gives the key "b"`, reason: "a key given twice"},
		{name: "twice, splice first", template: "a:\n  {{- toYaml .map | nindent 2 }}\n  b: 1", err: `line 3: the key "b" is given twice`,
			reason: "a key given twice"},
		{name: "missing", template: "a:\n  {{- toYaml .nope | nindent 2 }}", err: "line 2: .nope is not set", reason: "Helm prints null"},
		{name: "list for a map", template: "a:\n  x: 1\n  {{- toYaml .list | nindent 2 }}",
			err: "line 3: .list is a list, and the template puts the entries of a map", reason: "the message must say what is there"},
		{name: "string for a map", template: "a:\n  x: 1\n  {{- toYaml .word | nindent 2 }}", err: "line 3: .word is not a map or list",
			reason: "it would become the end of the author's own scalar"},
		{name: "string for a map, deeper", template: "a:\n  x: 1\n  {{- toYaml .word | nindent 4 }}", err: "line 3: .word is not a map or list",
			reason: "it would become the end of the author's own scalar"},
		{name: "string for a map, alone", template: "a:\n  {{- toYaml .word | nindent 2 }}", want: m{"a": "w"}, reason: "the whole value"},
		{name: "map in a comment", template: "a: 1 # {{ toYaml .map }}\n# {{ .map | toYaml | indent 2 }}", want: m{"a": int64(1)},
			reason: "a comment is nothing"},
		{name: "deeper text", template: "a:\n  {{- toYaml .map | nindent 2 }}\n    x: 1", err: "followed by deeper text",
			reason: "it would belong to the last entry in Helm"},
		{name: "in a block", template: "a: |\n  top:\n    {{- toYaml .map | nindent 4 }}\n    {{- toYaml .list | nindent 4 }}",
			want: m{"a": "top:\n  a: 2\n  b: \"1.10\"\n  - x\n  - 2"}, reason: "inside text it is text, as Helm prints it"},
		{name: "as a variable", template: "{{ $y := toYaml .map }}a: {{ $y }}\nb: {{ toYaml .map | b64enc }}",
			want: m{"a": "a: 2\nb: \"1.10\"", "b": "YTogMgpiOiAiMS4xMCI="}, reason: "anywhere else it is ordinary text, and text is a string"},
		{name: "no base64", template: "a: {{ \"!\" | b64dec }}", err: "this is no base64", reason: "sprig prints the words of the error"},
		{name: "base64", template: "a: {{ \"eA==\" | b64dec }}", want: m{"a": "x"}, reason: "what it stands for"},
		{name: "scalar in a block", template: "a: |-\n  {{ toYaml .version }}", want: m{"a": `"1.10"`}, reason: "the text that Helm prints"},
		{name: "with", template: "{{ with .map }}a:\n  {{- toYaml . | nindent 2 }}{{ end }}", want: m{"a": m{"a": int64(2), "b": "1.10"}},
			reason: "dot"},
	})
}

func TestJSONAndQuoteAtTheEnd(t *testing.T) {
	runRows(t, []row{
		{name: "whole", template: "a: {{ .map | toJson }}\nb: {{ .port | quote }}\nc: {{ squote .port }}\nd: {{ toPrettyJson .list }}",
			want:   m{"a": m{"a": int64(2), "b": "1.10"}, "b": "8080", "c": "8080", "d": l{"x", int64(2)}},
			reason: "toJson the value, quote the string"},
		{name: "json in text", template: "a: |-\n  x={{ .map | toJson }}\nb: '{{ .tag | toJson }} {{ .tag | toRawJson }}'",
			want: m{"a": `x={"a":2,"b":"1.10"}`, "b": `"'\"\u003c\u0026\u003e" "'\"<&>"`}, reason: "the text that Helm prints"},
		{name: "pretty in a block", template: "a: |-\n  {{- .map | toPrettyJson | nindent 4 }}",
			want: m{"a": "{\n  \"a\": 2,\n  \"b\": \"1.10\"\n}"}, reason: "its lines keep their indentation"},
		{name: "quote in text", template: "a: |-\n  x={{ .tag | quote }} {{ .word | squote }}", want: m{"a": `x="'\"<&>" 'w'`},
			reason: "the text that Helm prints"},
		{name: "elsewhere", template: "{{ $q := quote .word }}a: {{ $q }}\nb: {{ .word | quote | upper }}", want: m{"a": `"w"`, "b": `"W"`},
			reason: "ordinary text"},
		{name: "quote of a map", template: "a: {{ .map | quote }}", err: "a map cannot be used inside text", reason: "Go would print map[k:v]"},
		{name: "printf %q", template: "a: {{ printf \"%q\" .word }}", err: "write `| quote`", reason: "its quotes would be part of the value"},
		{name: "piped printf %q", template: "{{ if .x }}a: {{ .word | printf \"%q\" }}{{ end }}", err: "write `| quote`",
			reason: "found at compile, on a path not taken"},
		{name: "printf %q in text", template: "a: |-\n  x={{ printf \"%q\" .word }}", want: m{"a": `x="w"`},
			reason: "there the quotes are meant"},
	})
}

func TestTextAndTypes(t *testing.T) {
	runRows(t, []row{
		{name: "types", template: "a: {{ .replicas }}\nb: {{ .version }}\nc: {{ .big }}\nd: {{ .float }}\ne: {{ .flag }}\nf: {{ .map }}\ng: " +
			"{{ .list }}",
			want: m{"a": int64(3), "b": "1.10", "c": int64(9007199254740993), "d": 2.5, "e": false, "f": m{"a": int64(2), "b": "1.10"},
				"g": l{"x", int64(2)}}, reason: "a whole hole is the value with its type"},
		{name: "arithmetic",
			template: "a: {{ add .replicas 1 }}\nb: {{ int .version }}\nc: {{ .version | float64 }}\nd: {{ len .list }}\ne: {{ 3 }}\nf: {{ mulf " +
				"0.5 4 }}", want: m{"a": int64(4), "b": int64(0), "c": 1.1, "d": int64(2), "e": int64(3), "f": 2.0},
			reason: "ints are int64, floats stay"},
		{name: "text around", template: "a: 80{{ .replicas }}\nb: {{ printf \"%d\" .replicas }}\nc: {{ printf \"%d\" .replicas | int }}",
			want: m{"a": "803", "b": "3", "c": int64(3)}, reason: "text is a string; | int makes it a number"},
		{name: "map in quotes", template: "a: \"{{ .map }}\"", err: "a map cannot be used inside text: write `| toJson`",
			reason: "Go would print map[k:v]"},
		{name: "list in text", template: "a: x {{ .list }}", err: "a list cannot be used inside text", reason: "Go would print [a b]"},
		{name: "map as a key", template: "{{ .map }}: 1", err: "a map cannot be used inside text", reason: "a key is text"},
		{name: "number as a key", template: "{{ .port }}: 1\n{{ .flag }}: 2", want: m{"8080": int64(1), "false": int64(2)},
			reason: "keys are strings"},
		{name: "floats in text", template: "a: x{{ 1500000.5 }}", want: m{"a": "x1500000.5"}, reason: "as JSON writes them"},
		{name: "sibling", template: "w: 1\n{{ .word }}: 2", err: `.word gives the key "w", which already exists`,
			reason: "a hole cannot replace what the author wrote"},
		{name: "twin holes", template: "{{ .word }}: 1\n{{ .word }}: 2", err: `gives the key "w"`, reason: "a key given twice"},
		{name: "author's twin", template: "a: 1\n\"a\": 2", err: `the key "a" is given twice`, reason: "found at compile"},
		{name: "author's twins of other spellings", template: "y: 1\non: 2", err: `the key "true" is given twice: YAML 1.1 reads the keys y and on as "true": quote them`,
			reason: "the message names what is written"},
		{name: "author's twin in quotes", template: "on: 1\n\"true\": 2", err: `reads the keys on and true as "true"`, reason: "one is quoted"},
		{name: "author's twin of one other spelling", template: "on: 1\non: 2", err: `YAML 1.1 reads the key on as "true"`, reason: "both are the same"},
		{name: "merge key", template: "x: &a {b: 1}\ny:\n  <<: *a", err: "merge key", reason: "a key given twice would be silent"},
		{name: "quoted merge key", template: "\"<<\": 1", want: m{"<<": int64(1)}, reason: "an ordinary string"},
		{name: "complex key", template: "? [a]\n: 1", err: "a key must be a scalar", reason: "JSON has no such keys"},
		{name: "null key", template: "~: 1", err: "a key cannot be", reason: "JSON has no such keys"},
		{name: "anchor", template: "a: &{{ .word }} 1", err: "a hole cannot be part of an anchor", reason: "names are the author's"},
		{name: "anchor tail", template: "a: &x{{ .word }} 1", err: "a hole cannot be part of an anchor", reason: "names are the author's"},
		{name: "alias name", template: "a: *{{ .word }}", err: "a hole cannot be part of an anchor", reason: "names are the author's"},
		{name: "tag", template: "a: !{{ .word }} 1", err: "a hole cannot be part of an anchor", reason: "types are the author's"},
		{name: "ampersand in text", template: "a: \"?x=1 &y={{ .word }} *{{ .word }} !{{ .word }}\"", want: m{"a": "?x=1 &y=w *w !w"},
			reason: "in quotes it is no anchor"},
		{name: "string tag", template: "a: !!str {{ .replicas }}", want: m{"a": "3"}, reason: "the tag makes text"},
		{name: "int tag", template: "a: !!int {{ .version }}", err: "the tag !!int cannot be put on a hole",
			reason: "a string must not become a number"},
		{name: "alias", template: "a: &x {b: {{ .map }}}\nc: *x", want: m{"a": m{"b": m{"a": int64(2), "b": "1.10"}},
			"c": m{"b": m{"a": int64(2), "b": "1.10"}}}, reason: "a deep copy"},
		{name: "alias in itself", template: "a: &x {b: *x}", err: "contains itself", reason: "no end"},
	})
}

func TestDocuments(t *testing.T) {
	runRows(t, []row{
		{name: "nothing", template: "# {{ .word }}\n", err: "renders nothing", reason: "one document"},
		{name: "nothing on this path", template: "{{ if .nope }}a: 1{{ end }}", err: "renders nothing", reason: "known only when rendered"},
		{name: "marker alone", template: "---\n", err: "renders nothing", reason: "one document"},
		{name: "two", template: "a: 1\n---\nb: 2\n", err: "line 2: the template renders two documents", reason: "read to the end"},
		{name: "second empty", template: "a: 1\n---\n", err: "two documents", reason: "read to the end"},
		{name: "broken second", template: "a: 1\n---\n[", err: "not YAML", reason: "read to the end"},
		{name: "leading marker", template: "---\na: 1\n", want: m{"a": int64(1)}, reason: "still one document; Helm charts begin so"},
		{name: "list", template: "- 1", err: "renders a list", reason: "one mapping"},
		{name: "scalar", template: "{{ .word }}", err: "renders a single value", reason: "one mapping"},
		{name: "map hole at the root", template: "{{ .map }}", err: "renders a single value", reason: "only toYaml gives entries"},
		{name: "splice at the root", template: "{{ toYaml .map }}", want: m{"a": int64(2), "b": "1.10"}, reason: "entries of the root"},
		{name: "broken", template: "a: 1\n b: 2", err: "line 2: not YAML", reason: "at compile, since every path is broken"},
		{name: "broken on this path", template: "{{ if .word }}\na: [\n{{ end }}", err: "not YAML", reason: "when rendered"},
		{name: "tab", template: "a:\n\tb: 1", err: "not YAML", reason: "YAML's own rule"},
	})
}

func TestIncludes(t *testing.T) {
	const names = "{{ define \"name\" }}{{ .metadata.name }}-x{{ end }}{{ define \"labels\" }}app: {{ .metadata.name }}\nv: {{ .version " +
		"}}{{ end }}{{ define \"port\" }}{{ .port }}{{ end }}"
	runRows(t, []row{
		{name: "entries", template: names + "a:\n  {{- include \"labels\" . | nindent 2 }}", want: m{"a": m{"app": "shop", "v": "1.10"}},
			reason: "the author's text with its holes"},
		{name: "template action", template: names + "a: {{ template \"port\" . }}", want: m{"a": int64(8080)}, reason: "holes keep their types"},
		{name: "whole", template: names +
			"a: {{ include \"port\" . }}\nb: {{ include \"port\" . | quote }}\nc: {{ include \"port\" . | int | add 1 }}",
			want: m{"a": int64(8080), "b": "8080", "c": int64(8081)}, reason: "at the end with its holes, elsewhere text"},
		{name: "elsewhere", template: names +
			"a: {{ include \"name\" . | trunc 4 | upper }}\n{{ if eq (include \"name\" .) \"shop-x\" }}b: {{ $n := include \"name\" . }}{{ $n | " +
			"len }}{{ end }}", want: m{"a": "SHOP", "b": int64(6)}, reason: "the real values"},
		{name: "as an argument", template: names + "a: {{ printf \"%s!\" (include \"name\" .) }}", want: m{"a": "shop-x!"},
			reason: "the real values"},
		{name: "toYaml inside",
			template: "{{ define \"m\" }}{{ toYaml .map }}{{ end }}a:\n  {{- include \"m\" . | nindent 2 }}\nb: {{ include \"m\" . | quote " +
				"}}\nc: {{ include \"m\" . }}", want: m{"a": m{"a": int64(2), "b": "1.10"}, "b": "a: 2\nb: \"1.10\"",
				"c": m{"a": int64(2), "b": "1.10"}}, reason: "entries, text or value, by where it stands"},
		{name: "missing elsewhere", template: "{{ define \"n\" }}{{ .nope }}{{ end }}a: {{ include \"n\" . | upper }}",
			err: "line 1: .nope is not set", reason: "text needs the value"},
		{name: "unknown", template: names + "a: {{ include \"nam\" . }}", err: "did you mean name?", reason: "found at compile"},
		{name: "unknown template", template: names + "a: {{ template \"lables\" . }}", err: "did you mean labels?", reason: "found at compile"},
		{name: "computed name", template: names + "a: {{ include (printf \"na%s\" \"me\") . }}", want: m{"a": "shop-x"}, reason: "allowed"},
		{name: "computed unknown name", template: names + "a: {{ include .word . }}", err: "w", reason: "an error when rendered"},
		{name: "block action", template: "a: {{ block \"b\" .map }}{{ .a }}{{ end }}", want: m{"a": int64(2)}, reason: "define and use at once"},
		{name: "comment inside", template: "{{ define \"x\" }}# {{ .nope }}\nb: 1{{ end }}a:\n  {{- include \"x\" . | nindent 2 }}",
			want: m{"a": m{"b": int64(1)}}, reason: "a comment is nothing, also in an include"},
	})
}

func TestIndentedText(t *testing.T) {
	runRows(t, []row{
		{name: "block", template: "a: |-\n{{ .text | indent 2 }}\nb: |\n  {{- .text | nindent 2 }}\n", want: m{"a": "a\nb\n", "b": "a\nb\n\n"},
			reason: "byte for byte; the block's last newline is the author's"},
		{name: "deeper", template: "a: |-\n  top: |\n{{ .text | trim | indent 4 }}", want: m{"a": "top: |\n  a\n  b"},
			reason: "each line at that indentation"},
		{name: "map", template: "a: {{ .map | nindent 2 }}", err: "only text can be indented", reason: "say toYaml"},
		{name: "in a comment", template: "a:\n# {{ .text | indent 2 }}\nb: 1", err: "line 2: .text has several lines, which do not stay together",
			reason: "its second line would become the value of a"},
		{name: "one line in a comment", template: "a:\n# {{ .word | indent 2 }}\nb: 1", want: m{"a": nil, "b": int64(1)},
			reason: "a comment is nothing"},
		{name: "out of its block", template: "a: |\n      {{ .text | indent 4 }}\nb: 1", err: "not YAML",
			reason: "its second line would stand outside the block"},
		{name: "number", template: "a: |-\n  {{- .port | nindent 2 }}", want: m{"a": "8080"}, reason: "its text"},
		{name: "several lines as a plain value", template: "a:\n  {{- .text | trim | nindent 2 }}", want: m{"a": "a b"},
			reason: "lines of a plain scalar fold, as the author laid them out"},
	})
}

func TestErrorsAreTyped(t *testing.T) {
	for _, text := range []string{"a: {{ .nope }}", "a: {{ .word.x }}", "a: {{ index .list 99 }}", "a: {{ .word | mustRegexMatch \"[\" }}",
		"a: {{ div 1 .zero }}", "{{ range .word }}{{ end }}a: 1", "a: {{ .word | until }}", "x: 1\n{{ if .word }}a: [{{ end }}"} {
		_, err := renderOnce(t, text)
		var e *Error
		if !errors.As(err, &e) || e.Line == 0 || e.Problem == "" || strings.Contains(e.Problem, "_need") ||
			strings.Contains(e.Problem, "template:") {
			t.Errorf("%q: %#v", text, err)
		}
	}
}
