package kept

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestDictionariesAreWorthIt: anyone who may create an object cannot make all others of its kind large.
func TestDictionariesAreWorthIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	hex := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%016x", random.Uint64())
		}
		return b.String()[:n]
	}
	const usual = `{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"app-%s","namespace":"team-%s","labels":{"app.kubernetes.io/part-of":` +
		`"platform"}},"spec":{"storageClassName":"fast","accessModes":["ReadWriteOnce"],"image":"registry.example.com/app","resources":{"limits":` +
		`{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m","memory":"128Mi"}},"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":` +
		`"Exists","effect":"NoExecute"}]},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"every downstream is` +
		` ready","lastTransitionTime":"2024-01-01T00:00:00Z"}]}}`
	for _, row := range []struct {
		reason string
		odd    func(i int) bool // which objects are as long as a dictionary may be, and like no other
	}{
		{"none is odd", func(int) bool { return false }},
		{"the first one that may be a dictionary is", func(i int) bool { return i == period }},
		{"a later one is", func(i int) bool { return i == 5*period }},
		{"those that come first are", func(i int) bool { return i < 2*period }},
		{"one of ten is", func(i int) bool { return i%10 == 0 }},
	} {
		kind := schema.GroupVersionKind{Group: "example.com", Kind: "App"}
		all, size, n := NewTexts(), 0, 0
		for i := range 8 * trialEvery {
			if row.odd(i) {
				all.compress(kind, fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"App","spec":{"a":%q}}`, hex(maxDictionary-100)))
			} else if made := all.compress(kind, fmt.Appendf(nil, usual, hex(6), hex(1))); i >= 4*trialEvery {
				size, n = size+len(made.bytes), n+1
			}
		}
		if each := size / n; each > 80 { // without a dictionary, 400
			t.Errorf("%s: the others take %d bytes each", row.reason, each)
		}
	}
}

// TestPackedAlike: a list and a watch keep the same of an object.
func TestPackedAlike(t *testing.T) {
	t.Parallel()
	const fields = `[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"a","operation":"Apply"}]`
	for reason, in := range map[string]string{
		"managedFields are half of it":                   `{"apiVersion":"example.com/v1","kind":"App","metadata":{"managedFields":` + fields + `,"name":"n","uid":"u"}}`,
		"a field of the same name and value comes first": `{"apiVersion":"example.com/v1","data":{"managedFields":` + fields + `},"kind":"App","metadata":{"managedFields":` + fields + `,"name":"n"}}`,
		"an empty list":                             `{"apiVersion":"example.com/v1","kind":"App","metadata":{"managedFields":[],"name":"n"}}`,
		"it is being deleted":                       `{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"n","finalizers":["a/b"],"deletionTimestamp":"2024-01-01T00:00:00Z"}}`,
		"a kind named like the answer to a failure": `{"apiVersion":"example.com/v1","kind":"Status","metadata":{"name":"n","uid":"u"}}`,
	} {
		var want, source map[string]any
		if err := errors.Join(utiljson.Unmarshal([]byte(in), &want), utiljson.Unmarshal([]byte(in), &source)); err != nil {
			t.Fatal(err)
		}
		delete(want["metadata"].(map[string]any), "managedFields")
		watched, _, err := PackedCodec{Texts: NewTexts()}.Decode([]byte(in), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := NewTexts().Pack(&unstructured.Unstructured{Object: source})
		if err != nil {
			t.Fatal(err)
		}
		for from, obj := range map[string]any{"a watch": watched, "a list": listed} {
			p, ok := obj.(*Packed)
			if !ok {
				t.Errorf("%s: of %s, it is a %T", reason, from, obj)
				continue
			}
			u, err := p.Unpack()
			if err != nil {
				t.Fatal(err)
			}
			if got, wanted := string(must(utiljson.Marshal(u.Object))), string(must(utiljson.Marshal(want))); got != wanted {
				t.Errorf("%s: of %s, it is\n%s, want\n%s", reason, from, got, wanted)
			}
			if w := watched.(*Packed); p.Writers != w.Writers || !slices.Equal(p.Finalizers(), w.Finalizers()) || p.identity != w.identity {
				t.Errorf("%s: of %s, it is %+v, want %+v", reason, from, p, w)
			}
			if plain := p.text.Load().bytes; strings.Count(string(plain), `"a"`) > strings.Count(in, `"data"`) {
				t.Errorf("%s: of %s, managedFields are kept: %s", reason, from, plain)
			}
		}
	}
}
