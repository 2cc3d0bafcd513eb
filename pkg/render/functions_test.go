package render

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

func TestFunctionsThatAreRefused(t *testing.T) {
	reasons := map[string][]string{
		"differ": {"now", "ago", "date", "dateInZone", "date_in_zone", "dateModify", "mustDateModify", "htmlDate", "toDate",
			"durationRound", "randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "randInt", "shuffle", "uuidv4", "genPrivateKey",
			"genCA", "genSelfSignedCert", "genSignedCert", "bcrypt", "htpasswd", "encryptAES"},
		"process":              {"env", "expandenv"},
		"network":              {"getHostByName"},
		"never":                {"tpl", "fromYaml"},
		"do not send requests": {"lookup"},
	}
	for reason, names := range reasons {
		for _, name := range names {
			for _, text := range []string{"a: {{ " + name + " }}", "{{ if (" + name + " 1) }}{{ end }}a: 1", "a: {{ .x | " + name + " }}"} {
				_, err := Compile(text, Options{})
				if err == nil || !strings.Contains(err.Error(), "the function "+name+" is not available") || !strings.Contains(err.Error(), reason) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
}

// TestNoUnknownSprigFunction fails if a new version of sprig has a function that nobody has reviewed.
func TestNoUnknownSprigFunction(t *testing.T) {
	const reviewed = 211
	if n := len(sprig.TxtFuncMap()); n != reviewed {
		t.Errorf("sprig has %d functions, %d were looked at: does a new one vary or reach out?", n, reviewed)
	}
	for name := range refused {
		if isFunction(name) {
			t.Errorf("%s is both refused and there", name)
		}
	}
	for name := range nullArguments {
		if !isFunction(name) && name != "omitempty" {
			t.Errorf("%s takes null and is no function", name)
		}
	}
}

func TestCompileGivesEveryError(t *testing.T) {
	_, err := Compile("a: {{ now }}\nb: {{ uper .x }}\n{{ if tpl .x . }}c: \uE000{{ end }}\nd: {{ .x | omitempty | lower }}\n{{ $_ := set "+
		".x \"a\" 1 }}\n", Options{})
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("%T", err)
	}
	var lines []int
	for _, e := range all {
		lines = append(lines, e.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 3, 4, 5}, lines); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
	if !strings.Contains(err.Error(), "line 2: unknown function uper: did you mean upper?") {
		t.Error(err)
	}
	var first *Error
	if !errors.As(err, &first) || first.Line != 1 {
		t.Errorf("errors.As does not find the first: %v", first)
	}
}

func TestSortedAndCopied(t *testing.T) {
	runRows(t, []row{
		{name: "keys", template: "a: {{ keys .map .metadata | join \",\" }}", want: m{"a": "a,b,name,namespace"}, reason: "Go's order changes"},
		{name: "values", template: "a: {{ values .metadata | join \",\" }}", want: m{"a": "shop,apps"}, reason: "in the order of the keys"},
		{name: "range", template: "a:{{ range $k, $v := .map }} {{ $k }}={{ $v }}{{ end }}", want: m{"a": "a=2 b=1.10"},
			reason: "text/template sorts"},
		{name: "set", template: "{{ $d := set .map \"z\" 1 }}a: {{ $d }}\nb: {{ .map }}",
			want:   m{"a": m{"a": int64(2), "b": "1.10", "z": int64(1)}, "b": m{"a": int64(2), "b": "1.10"}},
			reason: "a copy; the cached object is never touched"},
		{name: "unset", template: "{{ $d := unset .map \"a\" }}a: {{ $d }}\nb: {{ .map }}",
			want: m{"a": m{"b": "1.10"}, "b": m{"a": int64(2), "b": "1.10"}}, reason: "a copy"},
		{name: "set thrown away", template: "{{ $_ := set .map \"z\" 1 }}a: 1", err: "set gives a changed copy here",
			reason: "Helm's idiom would silently do nothing"},
		{name: "merge", template: "{{ $d := merge (dict \"x\" (dict \"y\" 1)) (dict \"x\" .map) (dict \"x\" .metadata) }}a: {{ $d }}\nb: {{ " +
			".map }}",
			want: m{"a": m{"x": m{"y": int64(1), "a": int64(2), "b": "1.10", "name": "shop", "namespace": "apps"}},
				"b": m{"a": int64(2), "b": "1.10"}}, reason: "sprig's merge would change .map"},
		{name: "mergeOverwrite", template: "a: {{ mergeOverwrite .map (dict \"a\" 9) }}\nb: {{ .map }}",
			want: m{"a": m{"a": int64(9), "b": "1.10"}, "b": m{"a": int64(2), "b": "1.10"}}, reason: "a copy"},
		{name: "append", template: "{{ $x := append .list 3 }}a: {{ $x }}\nb: {{ .list }}\nc: {{ prepend .list 0 }}\nd: {{ concat .list .list }}",
			want:   m{"a": l{"x", int64(2), int64(3)}, "b": l{"x", int64(2)}, "c": l{int64(0), "x", int64(2)}, "d": l{"x", int64(2), "x", int64(2)}},
			reason: "copies"},
		{name: "sortAlpha", template: "{{ $x := list \"b\" \"a\" }}a: {{ sortAlpha $x }}\nb: {{ $x }}\nc: {{ splitList \",\" \"b,a\" | " +
			"sortAlpha }}", want: m{"a": l{"a", "b"}, "b": l{"b", "a"}, "c": l{"a", "b"}}, reason: "a copy"},
		{name: "has", template: "a: {{ has 2 .list }}\nb: {{ has \"x\" .list }}\nc: {{ has 3 .list }}", want: m{"a": true, "b": true, "c": false},
			reason: "the template's 2 is the upstream's 2"},
		{name: "split", template: "a: {{ (split \"-\" \"x-y\")._1 }}\nb: {{ (semver .version).Minor }}\nc: {{ (urlParse \"http://h/p\").host }}",
			want: m{"a": "y", "b": int64(10), "c": "h"}, reason: "fields of what functions give"},
		{name: "dig", template: "a: {{ dig \"metadata\" \"name\" \"d\" . }}\nb: {{ dig \"nope\" \"name\" \"d\" . }}",
			want: m{"a": "shop", "b": "d"}, reason: "a missing step gives the default"},
		{name: "fromJson", template: "a: {{ fromJson `{\"b\": 9007199254740993}` }}", want: m{"a": m{"b": int64(9007199254740993)}},
			reason: "integers stay integers"},
		{name: "broken fromJson", template: "a: {{ fromJson \"{\" }}", err: "reading JSON", reason: "sprig gives nothing"},
		{name: "empty slice", template: "a: {{ slice .emptyList 0 }}\nb: {{ slice .list 1 }}", want: m{"a": l{}, "b": l{int64(2)}},
			reason: "an empty list is no null"},
		{name: "until", template: "a: {{ until .replicas }}\nb: {{ untilStep 5 0 -2 }}\nc: {{ seq 1 3 }}\nd: {{ until 0 }}",
			want: m{"a": l{int64(0), int64(1), int64(2)}, "b": l{int64(5), int64(3), int64(1)}, "c": "1 2 3", "d": l{}}, reason: "as sprig"},
		{name: "parameters and inputs",
			template: "a: {{ param \"registry\" }}/{{ (input \"settings\").data.k }}\nb: {{ (input \"settings\").data | toJson | sha256sum | " +
				"trunc 8 }}", want: m{"a": "r.example.com/v", "b": "666c1aa0"}, reason: "the rest of the data"},
		{name: "comparisons", template: "a: {{ and (eq .replicas 3) (gt .replicas 1) (ne .word \"x\") (not .nope) }}\nb: {{ ternary 1 2 .flag }}",
			want: m{"a": true, "b": int64(2)}, reason: "int64 against a constant"},
		{name: "else if, break, continue",
			template: "a:\n{{- range $i, $x := until 9 }}{{ if eq $x 1 }}{{ continue }}{{ else if eq $x 3 }}{{ break }}{{ end }}\n  - {{ $x }}{{ " +
				"end }}", want: m{"a": l{int64(0), int64(2)}}, reason: "text/template's control flow"},
		{name: "assignment prints nothing", template: "{{ $x := 1 }}{{ $x = add $x 1 }}a: {{ $x }}", want: m{"a": int64(2)},
			reason: "no placeholder"},
		{name: "parenthesised", template: "a: {{ ((.map)).b }}\nb: {{ (.map | toJson) }}\nc: {{ (.word) | quote }}",
			want: m{"a": "1.10", "b": m{"a": int64(2), "b": "1.10"}, "c": "w"}, reason: "parentheses change nothing"},
		{name: "method call", template: "a: {{ .word.Len 1 }}", err: "is not a function", reason: "values have no methods"},
		{name: "piped into a field", template: "a: {{ .word | .map }}", err: ".map is not a function", reason: "values cannot contain functions"},
		{name: "own names", template: "a: {{ _put 1 .word }}", err: "unknown function _put",
			reason: "rewriting's functions are not the author's"},
		{name: "flow brace", template: "a: {{{ .word }}: 1}", err: "needs a space before {{", reason: "the template's lexer sees {{ first"},
		{name: "flow brace with a space", template: "a: { {{ .word }}: {{ .word }}}", want: m{"a": m{"w": "w"}},
			reason: "a closing brace may follow directly"},
	})
}

func TestUpstreamIsNeverChangedNorShared(t *testing.T) {
	tmpl := compiled(t, "{{ $d := merge .map (dict \"q\" 1) }}{{ $e := set .map \"z\" 2 }}{{ $f := append .list 1 }}a: {{ .map }}\nb:\n  "+
		"{{- toYaml .map | nindent 2 }}\nc: {{ .list }}\nd:\n  {{- toYaml .items | nindent 2 }}\ne: {{ deepCopy .items }}")
	data := rowData(t)
	before, _ := json.Marshal(data.Upstream)
	first, err := tmpl.Execute(data)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(first)
	first["a"].(m)["a"] = "changed"
	first["b"].(m)["a"] = "changed"
	first["c"].(l)[0] = "changed"
	first["d"].(l)[0].(m)["n"] = "changed"
	if after, _ := json.Marshal(data.Upstream); string(before) != string(after) {
		t.Errorf("the upstream was changed: %s", after)
	}
	second, err := tmpl.Execute(data)
	if got, _ := json.Marshal(second); err != nil || string(got) != string(want) {
		t.Errorf("a result shares with the compiled template: %s, %v", got, err)
	}
}
