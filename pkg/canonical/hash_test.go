package canonical_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
)

var algorithms = []canonical.Algorithm{canonical.SHA256, canonical.SHA1, canonical.MD5}

func TestHashFitsEverywhere(t *testing.T) {
	form := regexp.MustCompile(`^v1-[0-9a-v]+$`)
	lengths := map[canonical.Algorithm]int{canonical.SHA256: 55, canonical.SHA1: 35, canonical.MD5: 29}
	for _, a := range algorithms {
		for i := range 200 {
			hash := canonical.Hash(a, map[string]any{"i": int64(i)})
			if errs := validation.IsValidLabelValue(hash); len(errs) > 0 {
				t.Fatalf("%s: %q is no label value: %v", a, hash, errs)
			}
			if !form.MatchString(hash) || len(hash) != lengths[a] {
				t.Fatalf("%s: %q has another form or not %d characters", a, hash, lengths[a])
			}
			if !canonical.CurrentHash(hash) || !a.Valid() {
				t.Fatalf("%s: %q is not recognized", a, hash)
			}
		}
	}
	if canonical.CurrentHash("v0-abc") || canonical.CurrentHash("") || canonical.Algorithm("crc32").Valid() {
		t.Error("another version's hash, none, and an unknown algorithm are recognized")
	}
}

// TestHashStaysTheSame: if the hash changed with a version of the program, every object of every cluster would look
// changed. To change it on purpose, change the version prefix.
func TestHashStaysTheSame(t *testing.T) {
	obj := map[string]any{
		"b": []any{"x", int64(1), 1.5, true, nil, map[string]any{}}, "a": "ü", "c": map[string]any{"z": int64(-1), "y": []any{}},
	}
	for a, want := range map[canonical.Algorithm]string{
		canonical.SHA256: "v1-18p9hog8j2ho2s9pdkbo16h984qklhai0rsq7ojrv8eemr97t4rg",
		canonical.SHA1:   "v1-h8flmdkccerirgpsf9appqoecln31faq",
		canonical.MD5:    "v1-6rtdvm5sseamcqq7hl1g4pltm0",
	} {
		must.Same(t, want, canonical.Hash(a, obj), a)
	}
}

func TestHashDistinguishes(t *testing.T) {
	values := []any{
		nil, true, false, "", "a", "1", "true", "null", int64(0), int64(1), 1.5, int64(-1), int64(9007199254740993), 9007199254740994.0,
		[]any{}, []any{nil}, []any{nil, nil}, []any{""}, []any{[]any{}}, []any{map[string]any{}}, map[string]any{}, map[string]any{"": ""},
		map[string]any{"a": "b"},
		[]any{"a", "b"}, []any{"ab"}, []any{"a", []any{"b"}}, []any{[]any{"a"}, "b"}, map[string]any{"a": map[string]any{"b": "c"}},
		map[string]any{"a": map[string]any{}, "b": "c"},
		[]any{"se"}, []any{"s", "e"}, 1e300, math.Inf(1), map[string]any{"a": "bkc"}, map[string]any{"a": "b", "c": ""},
	}
	seen := map[canonical.Sum]any{}
	for _, v := range values {
		if other, ok := seen[canonical.Digest(v)]; ok {
			t.Errorf("%#v and %#v have one digest", v, other)
		}
		seen[canonical.Digest(v)] = v
	}
}

// TestNulls: a hash counts the nulls that a document has, a digest does not.
func TestNulls(t *testing.T) {
	with, without := map[string]any{"a": map[string]any{"b": nil}}, map[string]any{"a": map[string]any{}}
	if canonical.Digest(with) != canonical.Digest(without) {
		t.Error("a digest counts nulls")
	}
	for _, a := range algorithms {
		if canonical.Hash(a, with) == canonical.Hash(a, without) {
			t.Errorf("a hash by %s does not count nulls", a)
		}
	}
}

func TestHashIgnores(t *testing.T) {
	for reason, pair := range map[string][2]any{
		"the order of keys":       {decode(t, `{"a":1,"b":{"c":2,"d":3}}`), decode(t, `{"b":{"d":3,"c":2},"a":1}`)},
		"a number's type":         {map[string]any{"a": 1.0}, map[string]any{"a": int64(1)}},
		"a number's Go type":      {map[string]any{"a": 1}, map[string]any{"a": json.Number("1")}},
		"negative zero":           {map[string]any{"a": math.Copysign(0, -1)}, map[string]any{"a": int64(0)}},
		"large integers as float": {map[string]any{"a": 1e18}, map[string]any{"a": int64(1e18)}},
	} {
		if canonical.Digest(pair[0]) != canonical.Digest(pair[1]) {
			t.Errorf("%s counts", reason)
		}
		for _, a := range algorithms {
			if canonical.Hash(a, pair[0].(map[string]any)) != canonical.Hash(a, pair[1].(map[string]any)) {
				t.Errorf("%s counts for %s", reason, a)
			}
		}
	}
}

func decode(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(text), &out))
	return out
}

func TestHashOfUnknownAlgorithm(t *testing.T) {
	defer func() {
		if r := recover(); fmt.Sprint(r) != "canonical: hash algorithm crc32 is none of sha256, sha1, md5" {
			t.Errorf("got %v", r)
		}
	}()
	canonical.Hash("crc32", nil)
}

// FuzzForm: Form is idempotent, does not change its input, and neither the order of keys nor a round trip through
// JSON changes the hash.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":null}`, `{"a":[null,{"b":null}]}`, `{"a":1.0,"b":1,"c":-0.0,"d":9007199254740993,"e":1e21,"f":1e-7}`,
		`{"apiVersion":"v1","kind":"Secret","stringData":{"a":"b"},"data":{"a":"Yw=="}}`,
		`{"apiVersion":"v1","kind":"Secret","stringData":{"a":1}}`,
		`{"a":"\u0000\ud83d\ude00","":{"":""}}`, `{"a":18446744073709551615}`, `{"a":[[[[]]]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in map[string]any
		if json.Unmarshal(data, &in) != nil || in == nil {
			return
		}
		before := canonical.Digest(in)
		once, err := canonical.Form(in)
		if canonical.Digest(in) != before {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		twice := must.Get(canonical.Form(once)).In(t)
		text := must.Get(json.Marshal(once)).In(t)
		again := decode(t, string(text))
		for _, a := range algorithms {
			hash := canonical.Hash(a, once)
			if canonical.Hash(a, twice) != hash {
				t.Errorf("%s: canonical of canonical has another hash", a)
			}
			if canonical.Hash(a, again) != hash {
				t.Errorf("%s: %s has another hash after JSON", a, text)
			}
		}
	})
}
