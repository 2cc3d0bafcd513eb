package apply

import (
	"errors"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
)

func TestDocument(t *testing.T) {
	target := Target{Namespace: "apps", Name: "web"}
	cases := []struct {
		reason string
		target Target
		obj    map[string]any
		uid    string
		rv     string
		want   map[string]any
	}{
		{
			reason: "managedFields are the API server's, and what identified the object when it was read is not carried over",
			target: target,
			obj: map[string]any{"kind": "A", "metadata": map[string]any{
				"name": "web", "namespace": "apps", "uid": "old", "resourceVersion": "7", "managedFields": []any{"x"}}},
			uid:  "u",
			want: map[string]any{"kind": "A", "metadata": map[string]any{"name": "web", "namespace": "apps", "uid": "u"}},
		},
		{
			reason: "the target names the object where the document does not",
			target: target,
			obj:    map[string]any{"kind": "A"},
			rv:     "1",
			want:   map[string]any{"kind": "A", "metadata": map[string]any{"name": "web", "namespace": "apps", "resourceVersion": "1"}},
		},
		{
			reason: "a cluster-scoped object has no namespace",
			target: Target{Name: "web"},
			obj:    map[string]any{"metadata": map[string]any{"namespace": "apps", "labels": map[string]any{"a": "b"}}},
			want:   map[string]any{"metadata": map[string]any{"name": "web", "labels": map[string]any{"a": "b"}}},
		},
		{
			reason: "nothing at all is still a document for the target",
			target: target,
			want:   map[string]any{"metadata": map[string]any{"name": "web", "namespace": "apps"}},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			before, _ := encode(tc.obj)
			got := document(tc.target, tc.obj, types.UID(tc.uid), tc.rv)
			must.Same(t, tc.want, got, "document")
			if after, _ := encode(tc.obj); string(after) != string(before) {
				t.Errorf("the given object was changed from %s to %s", before, after)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	cases := []struct {
		reason string
		in     any
		want   string
	}{
		{"keys are sorted", map[string]any{"b": int64(1), "a": nil}, `{"a":null,"b":1}`},
		{"an integer above 2^53 stays itself", []any{int64(9007199254740993), int64(math.MinInt64)}, `[9007199254740993,-9223372036854775808]`},
		{"DEL would have the whole apply refused", "a\x7fb", `"a\u007fb"`},
		{"NEL would be read as a space", "a\u0085b", `"a\u0085b"`},
		{"line and paragraph separators are line breaks in YAML", "\u2028\u2029", `"\u2028\u2029"`},
		{"the byte order mark and noncharacters", "\ufeff\ufffe\uffff", `"\ufeff\ufffe\uffff"`},
		{"escaped in keys, too", map[string]any{"\u0085": ""}, `{"\u0085":""}`},
		{"what YAML can carry is left as it is", "é 😀 \ufffd", `"é 😀 ` + "\ufffd" + `"`},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := encode(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("encode gave %s, want %s", got, tc.want)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	cases := []struct {
		reason string
		in     any
		want   string
	}{
		{"bytes that are no text", map[string]any{"data": []any{"ok", "\xff"}},
			"encoding .data[1]: the text is not valid UTF-8, which JSON cannot carry; encode it with base64"},
		{"a key that is no text", map[string]any{"\xff": 1}, `the key is not valid UTF-8`},
		{"a number that JSON does not have", map[string]any{"a": math.NaN()}, "encoding .a: NaN is not a JSON number"},
		{"a key that the API server could not find the end of", map[string]any{"a": map[string]any{strings.Repeat("k", 1001): 1}},
			"the key has 1001 bytes; the API server reads at most 1000"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := encode(tc.in)
			var e *EncodeError
			if !errors.As(err, &e) {
				t.Fatalf("encode gave %v, want an *EncodeError", err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %q, want it to say %q", err, tc.want)
			}
			must.Same(t, ReasonUnencodable, Classify(err).Reason, "classified")
		})
	}
}

// FuzzEncode: the API server, which parses an apply as YAML, reads any text in it unchanged.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\x7f", "a\u0080\u0085\u009fb", "\u2028\u2029\ufeff", "\ufffe\uffff\ufffd",
		"😀\U0001ffff", "{{ .x }}", "\n---\nkind: Secret", "<a href=\"&\">\\u0085", "\xff", "1e3", "- ? : # ! & *"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := encode(map[string]any{"value": s, "k" + s: "v"})
		if err != nil {
			return
		}
		var got map[string]any
		if err := yaml.Unmarshal(b, &got); err != nil {
			t.Fatalf("reading %s: %v", b, err)
		}
		if got["value"] != s || got["k"+s] != "v" {
			t.Errorf("%q came back as %q (body %s)", s, got, b)
		}
	})
}

func TestPointer(t *testing.T) {
	must.Same(t, "/metadata/labels/a.b~1c~01", pointer([]string{"metadata", "labels", "a.b/c~1"}), "the pointer")
}
