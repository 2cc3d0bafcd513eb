package drift_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// owning returns an object whose fields we own by an apply, and other managers theirs.
func owning(t *testing.T, spec, ours, theirs string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
  managedFields:
  - {manager: `+manager+`, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": `+ours+`}}
  - {manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": `+theirs+`}}
spec: `+spec)
}

func TestUnlikeNew(t *testing.T) {
	for _, row := range []struct {
		reason, live, ours, theirs, created string
		want                                string // path: ours, theirs or nobody
	}{
		{"equal objects", `{a: 1}`, `{"f:a": {}}`, `{"f:other": {}}`, `{a: 1}`, ""},
		{"a derived value stays", `{a: 1, b: [x]}`, `{"f:a": {}}`, `{"f:other": {}}`, `{a: 1, b: [x, y]}`, ".spec.b nobody"},
		{"a leftover without an owner", `{a: 1, b: {c: 1}}`, `{"f:a": {}}`, `{"f:other": {}}`, `{a: 1}`, ".spec.b nobody"},
		{"only what others own of it is theirs", `{a: 1, b: {c: 1, d: 2}}`, `{"f:a": {}}`, `{"f:b": {"f:d": {}}}`, `{a: 1}`, ".spec.b.c nobody, .spec.b.d other"},
		{"what we own and the API server did not store", `{a: null}`, `{"f:a": {}}`, `{"f:other": {}}`, `{a: {}}`, ".spec.a ours"},
		{"null is a value", `{a: null}`, `{"f:b": {}}`, `{"f:other": {}}`, `{}`, ".spec.a nobody"},
		{"what is missing", `{}`, `{"f:b": {}}`, `{"f:other": {}}`, `{a: 1}`, ".spec.a nobody"},
		{"items are compared by their keys", `{l: [{name: a, x: 1}, {name: b}]}`, `{"f:l": {'k:{"name":"a"}': {"f:name": {}}, 'k:{"name":"b"}': {"f:name": {}}}}`, `{"f:other": {}}`,
			`{l: [{name: b, x: 2}, {name: a}]}`, ".spec.l[name=a].x nobody, .spec.l[name=b].x nobody"},
	} {
		created := object(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: b}, spec: "+row.created+"}")
		var got []string
		for _, f := range drift.UnlikeNew(owning(t, row.live, row.ours, row.theirs), created, &drift.View{Manager: manager}) {
			owner := f.Manager
			switch {
			case f.Ours:
				owner = "ours"
			case owner == "":
				owner = "nobody"
			}
			got = append(got, f.Path.String()+" "+owner)
		}
		must.Same(t, row.want, strings.Join(got, ", "), row.reason)
	}
}

// TestClaim: a claim has the live values, also in items that lack a defaulted key, and the document is not changed.
func TestClaim(t *testing.T) {
	live := owning(t, `{l: [{name: a, kind: k, x: 1}], s: {t: 1}}`, `{"f:l": {'k:{"kind":"k","name":"a"}': {"f:name": {}}}}`, `{"f:other": {}}`)
	created := object(t, "{apiVersion: example.com/v1, kind: Thing, spec: {l: [{name: a, kind: k}]}}")
	doc := map[string]any{"spec": map[string]any{"l": []any{map[string]any{"name": "a"}}}}
	claim, ok := drift.Claim(doc, drift.UnlikeNew(live, created, &drift.View{Manager: manager}))
	want := map[string]any{"spec": map[string]any{"l": []any{map[string]any{"name": "a", "x": int64(1)}}, "s": map[string]any{"t": int64(1)}}}
	if !ok || !cmp.Equal(claim, want) {
		t.Errorf("the claim is %v", claim)
	}
	if !cmp.Equal(doc, map[string]any{"spec": map[string]any{"l": []any{map[string]any{"name": "a"}}}}) {
		t.Errorf("the document became %v", doc)
	}
}

// TestShape: only changes of which fields are ours, and of values that select others, change the shape.
func TestShape(t *testing.T) {
	const owned = `{"f:a": {}, "f:b": {"f:image": {}, "f:type": {}}}`
	shape := func(spec, ours string) uint32 {
		l := (&drift.View{Manager: manager}).Live(owning(t, spec, ours, `{"f:other": {}}`))
		return l.Shape
	}
	first := shape(`{a: x, b: {image: "i:1", type: A}}`, owned)
	for _, row := range []struct {
		reason, spec, owned string
		same                bool
	}{
		{"another value", `{a: y, b: {image: "i:2", type: A}}`, owned, true},
		{"an empty one", `{a: "", b: {image: "i:1", type: A}}`, owned, false},
		{"another type", `{a: x, b: {image: "i:1", type: B}}`, owned, false},
		{"the latest image", `{a: x, b: {image: "i", type: A}}`, owned, false},
		{"a URL, which is no image name either", `{a: x, b: {image: "https://example.com/i", type: A}}`, owned, true},
		{"an image name that is not valid, for which the API server does not think of latest", `{a: x, b: {image: " ", type: A}}`, owned, true},
		{"an image by digest", `{a: x, b: {image: "h:1/i@sha256:0", type: A}}`, owned, true},
		{"a tag and a digest", `{a: x, b: {image: "i:latest@sha256:` + strings.Repeat("0", 64) + `", type: A}}`, owned, false},
		{"a digest alone", `{a: x, b: {image: "i@sha256:` + strings.Repeat("0", 64) + `", type: A}}`, owned, true},
		{"a field less", `{a: x, b: {image: "i:1", type: A}}`, `{"f:a": {}, "f:b": {"f:type": {}}}`, false},
		{"a field of others", `{a: x, b: {image: "i:1", type: A}, c: 1}`, owned, true},
	} {
		must.Same(t, row.same, shape(row.spec, row.owned) == first, row.reason, "the shape is the same")
	}
}
