package fieldpath

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/corollary-dev/corollary/internal/must"
)

func field(s string) Step { return Step{Kind: FieldStep, Field: s} }

func selector(kv ...string) Step {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return Step{Kind: SelectorStep, Selector: m}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		reason, in string
		want       Path
		text       string // the canonical text; empty if it is in
	}{
		{reason: "plain keys follow dots", in: ".spec.replicas", want: Path{field("spec"), field("replicas")}},
		{reason: "a key with dots is quoted", in: ".metadata.labels['a.b/c']", want: Path{field("metadata"), field("labels"), field("a.b/c")}},
		{reason: "quotes that are not needed are dropped", in: ".data['key']", want: Path{field("data"), field("key")}, text: ".data.key"},
		{reason: "a key that looks like an index stays a key", in: ".data['0']", want: Path{field("data"), field("0")}},
		{reason: "the empty key exists in maps", in: ".data['']", want: Path{field("data"), field("")}},
		{reason: "the root's own keys may be quoted", in: "['a.b'].c", want: Path{field("a.b"), field("c")}},
		{reason: "quote and backslash are escaped", in: `.data['it\'s \\']`, want: Path{field("data"), field(`it's \`)}},
		{reason: "an item by key", in: ".spec.containers[name=app].image", want: Path{field("spec"), field("containers"), selector("name", "app"),
			field("image")}},
		{reason: "an item by several keys, whose order does not count", in: ".ports[protocol=TCP,containerPort=80]",
			want: Path{field("ports"), selector("containerPort", "80", "protocol", "TCP")}, text: ".ports[containerPort=80,protocol=TCP]"},
		{reason: "a selector's value may be anything when quoted", in: ".a[name='a, b]']", want: Path{field("a"), selector("name", "a, b]")}},
		{reason: "a selector's value may be empty when quoted", in: ".a[name='']", want: Path{field("a"), selector("name", "")}},
		{reason: "a selector's key may be quoted", in: ".a['x.y'=z]", want: Path{field("a"), selector("x.y", "z")}},
		{reason: "an item by number", in: ".spec.ports[0].port", want: Path{field("spec"), field("ports"), {Kind: IndexStep}, field("port")}},
		{reason: "numbers have more digits", in: ".a[120]", want: Path{field("a"), {Kind: IndexStep, Index: 120}}},
		{reason: "lists of lists", in: ".a[1][2]", want: Path{field("a"), {Kind: IndexStep, Index: 1}, {Kind: IndexStep, Index: 2}}},
		{reason: "hyphens and underscores are plain", in: "._x.a-b.c_1.$ref", want: Path{field("_x"), field("a-b"), field("c_1"), field("$ref")}},
		{reason: "what a terminal would obey is not written as it is", in: ".data['\x1b[2J\u202e']",
			want: Path{field("data"), field("\x1b[2J\u202e")},
			text: `.data['\u{1b}[2J\u{202e}']`},
		{reason: "a character by its number", in: `.data['\u{9}\u{1f4cf}']`, want: Path{field("data"), field("\t📏")}, text: `.data['\u{9}📏']`},
		{reason: "any letters are fine in quotes", in: ".data['größe 📏']", want: Path{field("data"), field("größe 📏")}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Parse(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			must.Same(t, tc.want, got)
			if tc.text == "" {
				tc.text = tc.in
			}
			if got.String() != tc.text {
				t.Errorf("canonical text %s, want %s", got, tc.text)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ reason, in, want string }{
		{"nothing", "", `path "": at character 1: the path is empty: write a path such as .spec.replicas`},
		{"a path that does not begin with a dot is helped", "spec.replicas",
			`path "spec.replicas": at character 1: a path begins with a dot: write .spec.replicas`},
		{"the root has no text", ".", `path ".": at character 2: no key follows the dot: name a key or leave out the dot`},
		{"a dot too many at the end", ".spec.", `path ".spec.": at character 7: no key follows the dot: name a key or leave out the dot`},
		{"no recursion", "..spec",
			`path "..spec": at character 2: unexpected '.', a key begins with a letter, _ or $: quote other keys: ['a.b/c']`},
		{"no wildcards", ".spec.*",
			`path ".spec.*": at character 7: unexpected '*', a key begins with a letter, _ or $: quote other keys: ['a.b/c']`},
		{"keys with a slash need quotes", ".labels.a/b",
			`path ".labels.a/b": at character 10: unexpected '/', a step begins with . or [: quote a key that has other characters: ['a.b/c']`},
		{"keys outside ASCII need quotes", ".größe",
			`path ".größe": at character 4: unexpected 'ö', a step begins with . or [: quote a key that has other characters: ['a.b/c']`},
		{"double quotes", `.labels["a.b"]`,
			`path ".labels[\"a.b\"]": at character 9: double quotes are not used: write single quotes: ['a.b/c']`},
		{"an open quote is shown where it opened", ".labels['a.b]",
			`path ".labels['a.b]": at character 9: the quote is not closed: close it with '`},
		{"an escape of its own making", `.a['\n']`,
			`path ".a['\\n']": at character 6: a backslash is followed by something other than ', \ or u: write \\ for a backslash`},
		{"an open bracket", ".a['b'",
			`path ".a['b'": at character 7: the path ends too early, brackets hold 'key', key=value or a number: write ['a.b/c'], [name=app] or [0]`},
		{"an unquoted key in brackets", ".a[b]",
			`path ".a[b]": at character 5: unexpected ']', brackets hold 'key', key=value or a number: write ['a.b/c'], [name=app] or [0]`},
		{"empty brackets", ".a[]",
			`path ".a[]": at character 4: unexpected ']', expected a key: quote it in single quotes if it has other characters`},
		{"a selector without a value", ".a[b=]",
			`path ".a[b=]": at character 6: unexpected ']', expected a value: quote it in single quotes if it has other characters`},
		{"a selector that says one key twice", ".a[b=1,b=2]",
			`path ".a[b=1,b=2]": at character 10: the selector names b twice: name each key once`},
		{"a selector's value with a space", ".a[b=c d]",
			`path ".a[b=c d]": at character 7: unexpected ' ', a pair ends with , or ]: quote a value that has other characters: [name='a, b']`},
		{"negative indexes", ".a[-1]",
			`path ".a[-1]": at character 4: unexpected '-', expected a key: quote it in single quotes if it has other characters`},
		{"leading zeros", ".a[01]", `path ".a[01]": at character 4: bad list index 01: write a number from 0 without leading zeros`},
		{"a character without a number", `.a['\u{}']`,
			`path ".a['\\u{}']": at character 6: \u is not followed by the number of a character: write it in hexadecimal digits, such as \u{9}`},
		{"a character that there is not", `.a['\u{110000}']`,
			`path ".a['\\u{110000}']": at character 6: \u is not followed by the number of a character: write it in hexadecimal digits, such as \u{9}`},
		{"an index beyond any list", ".a[99999999999999999999]",
			`path ".a[99999999999999999999]": at character 4: bad list index 99999999999999999999: write a number from 0 without leading zeros`},
		{"a key that begins with a digit", ".a[1st]",
			`path ".a[1st]": at character 5: unexpected 's', a list index ends with ]: quote a key that begins with a digit: ['1st']`},
		{"a dot before a bracket", ".a.['b']", `path ".a.['b']": at character 3: there is a dot before a bracket: leave out the dot`},
		{"white space", ". spec",
			`path ". spec": at character 2: unexpected ' ', a key begins with a letter, _ or $: quote other keys: ['a.b/c']`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := Parse(tc.in)
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("got %v, want a *ParseError", err)
			}
			if err.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestPrefixes(t *testing.T) {
	for _, tc := range []struct {
		reason, p, q string
		has, overlap bool
	}{
		{"itself", ".a.b", ".a.b", true, true},
		{"below", ".a.b.c", ".a.b", true, true},
		{"above", ".a", ".a.b", false, true},
		{"beside", ".a.bc", ".a.b", false, false},
		{"selectors compare as maps", ".a[x=1,y=2].z", ".a[y=2,x=1]", true, true},
		{"a longer selector is another step", ".a[x=1,y=2]", ".a[x=1]", false, false},
		{"other items", ".a[1]", ".a[0]", false, false},
		{"a key is no index", ".a['0']", ".a[0]", false, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p, q := MustParse(tc.p), MustParse(tc.q)
			must.Same(t, tc.has, p.HasPrefix(q), "HasPrefix")
			must.Same(t, tc.overlap, p.Overlaps(q), "Overlaps")
		})
	}
}

func TestChildSharesNothing(t *testing.T) {
	p := New("a", "b")
	x, y := p.Child("x"), p.Child("y")
	if x.String() != ".a.b.x" || y.String() != ".a.b.y" || p.String() != ".a.b" {
		t.Errorf("%s %s %s", p, x, y)
	}
	if !x.Equal(MustParse(".a.b.x")) || x.Equal(y) || x.Equal(p) {
		t.Error("Equal")
	}
	must.Same(t, ".", (Path{}).String(), "empty path")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		".spec.replicas", ".metadata.labels['a.b/c']", ".spec.containers[name=app].image", ".ports[containerPort=80,protocol=TCP]",
		".a[0][1]", `.a['\'\\']`, ".a['b'='c\n']", "", ".", "[", ".a[", ".a['", ".a[b", ".a[b=", "x", ".\x00", ".a['\xff']", ".a[007]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Offset < 0 || pe.Offset > len(s) || pe.Problem == "" || pe.Fix == "" {
				t.Fatalf("bad error %#v", err)
			}
			return
		}
		if utf8.ValidString(s) && strings.ContainsFunc(p.String(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q gives %q, which does not print", s, p)
		}
		q, err := Parse(p.String())
		if err != nil {
			t.Fatalf("%q gives %q, which does not parse: %v", s, p, err)
		}
		if !p.Equal(q) || p.String() != q.String() {
			t.Fatalf("%q gives %q, then %q", s, p, q)
		}
	})
}
