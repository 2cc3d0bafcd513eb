package document

import (
	"encoding/json"
	"strings"
	"testing"

	kyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
)

// asKubectl reads YAML the way kubectl does.
func asKubectl(text string) (map[string]any, error) {
	j, err := kyaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(string(j)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, err = numbers(v)
	m, _ := v.(map[string]any)
	return m, err
}

// numbers replaces json.Number by int64 where the value is one, else float64, in place.
func numbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		return v.Float64()
	case map[string]any:
		for k := range v {
			if v[k], err = numbers(v[k]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = numbers(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

var scalars = []string{
	"on", "off", "yes", "No", "y", "n", "true", "TRUE", "tRue", "null", "~", "Null", "", "0644", "0o644", "0x1F", "0b11", "1_000",
	"1e3", "1E3",
	"1.0", "1.10", ".5", "5.", "+1", "-0", "-0.0", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616",
	"2026-11-20", "2026-11-20T10:00:00Z", "190:20:30", "12:30", "1.2.3", "10Mi", "=", "<<", "-", "--", "---x", "a#b", "a:b", "://", "|x", ">x",
	"'quoted'", "\"a\\tb\"", "!!str 5", "!!int \"5\"", "!!float 5", "!!bool \"true\"", "!!null \"\"", "!!binary aGk=", "&a text", "[a, 1, on]",
	"{a: 1, on: off, 2: 3, 1.5: x, null: y}", "plain with spaces", "two\n  lines", "two\n\n  paragraphs", "'it''s'", "größe", "📏", "@x", "%x",
}

// Values are those that kubectl reads, whatever YAML 1.2 or another parser may think of them.
func TestValuesAreKubectls(t *testing.T) {
	for _, s := range scalars {
		for _, text := range []string{"k: " + s + "\n", "k:\n- " + s + "\n", "k: {a: " + s + "}\n", s + ": v\n", "k: |\n  " + s + "\n"} {
			want, err := asKubectl(text)
			doc := ParseDocument("f", []byte(text))
			if err != nil || want == nil {
				if len(doc.Errs) == 0 {
					t.Errorf("%q: kubectl says %v, we read %v", text, err, doc.Values)
				}
				continue
			}
			if len(doc.Errs) > 0 {
				// Two keys that are one in JSON, or that JSON has not: kubectl takes them, we tell.
				t.Errorf("%q: %v", text, doc.Errs)
				continue
			}
			must.Same(t, want, doc.Values, text, "-kubectl +ours")
		}
	}
}

func TestAliasesAreKubectls(t *testing.T) {
	for _, text := range []string{
		"a: &x {b: 1}\nc: *x\n",
		"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
		"a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n",
		"a: &x {b: 1}\nb: &y {b: 2, c: 3}\nd:\n  <<: [*x, *y]\n",
		"a: &x on\n*x : v\n",
		"a: &x [1, &y z]\nb: [*x, *y]\n",
	} {
		want, err := asKubectl(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		doc := ParseDocument("f", []byte(text))
		if err := doc.Errs.Err(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		must.Same(t, want, doc.Values, text, "-kubectl +ours")
	}
}

// FuzzParse: whatever the text, what we read without complaint is what kubectl reads.
func FuzzParse(f *testing.F) {
	for _, s := range scalars {
		f.Add("k: " + s + "\nl:\n  - " + s + "\n")
	}
	f.Add("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n")
	f.Add("? a\n: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		doc := ParseDocument("f", []byte(text))
		for _, e := range doc.Errs {
			if e.Line < 1 || e.Problem == "" || e.Fix == "" {
				t.Errorf("bad error %+v", e)
			}
		}
		if len(doc.Errs) > 0 {
			return
		}
		want, err := asKubectl(text)
		if err != nil {
			t.Fatalf("kubectl cannot read it: %v; we read %v", err, doc.Values)
		}
		must.Same(t, want, doc.Values, "-kubectl +ours")
	})
}
