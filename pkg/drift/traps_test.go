package drift_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/drift"
)

func merge(t *testing.T, ns, manager string, u *unstructured.Unstructured, patch string,
	subresources ...string) *unstructured.Unstructured {
	t.Helper()
	got, err := resourceFor(t, ns, u.Object).Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		t.Fatalf("patching with %s: %v", patch, err)
	}
	return got
}

func get(t *testing.T, ns string, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	got := must.Get(resourceFor(t, ns, u.Object).Get(t.Context(), u.GetName(), metav1.GetOptions{})).In(t)
	return got
}

func live(t *testing.T, v *drift.View, u *unstructured.Unstructured) *drift.Live {
	t.Helper()
	l := v.Live(u)
	return l
}

func paths(list []drift.Difference) string {
	var out []string
	for _, d := range list {
		out = append(out, d.Path.String()+" by "+d.Manager)
	}
	return strings.Join(out, "; ")
}

var plain = &drift.View{Manager: manager}

const typedText = `
apiVersion: drift.example.com/v1
kind: Typed
metadata: {name: typed}
spec:
  set: [b, a]
  keyed: [{name: two, port: 80, value: x}, {name: one, port: 80}]
  atomicList: [b, a]
  atomicMap: {a: 1}
  granular: {a: "1"}
`

// TestServerForeignWrites: what a write by another client does to the projection and its explanation. The writes are
// merge patches by a manager, in testdata/writes.txt.
func TestServerForeignWrites(t *testing.T) {
	golden.Table(t, "testdata/writes.txt", func(t *testing.T, input string) string {
		by, patch, _ := strings.Cut(input, ": ")
		ns := memory(t)
		desired := formOf(t, parse(t, typedText))
		theirs := merge(t, ns, by, apply(t, ns, manager, desired), patch)
		l, result := live(t, plain, theirs), "in sync"
		if l.P != drift.Desired(desired, plain) {
			result = "drift"
		}
		if changed := paths(drift.Changed(desired, theirs, plain)); changed != "" {
			result += ": " + strings.TrimSpace(changed)
		}
		if l.CoOwned {
			result += ", co-owned"
		}
		fixed := apply(t, ns, manager, desired)
		if live(t, plain, fixed).P != drift.Desired(desired, plain) {
			t.Errorf("one apply does not fix it: %s", paths(drift.Changed(desired, fixed, plain)))
		}
		return result
	})
}

// TestServerLost: the same value applied by another manager is co-owned, and omitting it does not remove it.
func TestServerLost(t *testing.T) {
	ns := memory(t)
	desired := formOf(t,
		parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: a}}, data: {one: "1", two: "2", three: "3"}}`))
	apply(t, ns, manager, desired)
	other := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {two: "2"}}`)
	before := apply(t, ns, "other", other)
	if l := live(t, plain, before); !l.CoOwned || l.P != drift.Desired(desired, plain) {
		t.Errorf("co-owned %v, as desired %v", l.CoOwned, l.P == drift.Desired(desired, plain))
	}
	less := formOf(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {one: "1"}}`))
	after := apply(t, ns, manager, less)
	var got []string
	for _, f := range drift.LostFields(before, after, manager) {
		got = append(got, f.Path.String()+" by "+f.Manager)
	}
	must.Same(t, []string{".data.two by other"}, got)
	if l := live(t, plain, after); l.P != drift.Desired(less, plain) {
		t.Error("a field that we gave up counts as drift")
	}
}

// TestServerForgedEntry: a forged entry with our name is read like any other; only the live values of the fields in it
// count.
func TestServerForgedEntry(t *testing.T) {
	ns := memory(t)
	desired := formOf(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: fast}}`))
	forged := &unstructured.Unstructured{Object: parse(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: slow, extra: x}}`)}
	forged.Object["metadata"].(map[string]any)["managedFields"] = []any{parse(t, `{manager: `+manager+`, operation: Apply, apiVersion: v1, fieldsType: FieldsV1,
 fieldsV1: {"f:data": {"f:mode": {}, "f:absent": {'k:{"a":1}': {}}}}}`)}
	u := must.Get(resourceFor(t, ns, forged.Object).Create(t.Context(), forged, metav1.CreateOptions{FieldManager: "forger"})).In(t)
	l := live(t, plain, u)
	if l.P == drift.Desired(desired, plain) {
		t.Error("forged managedFields make an object look as desired")
	}
	if fixed := apply(t, ns, manager, desired); live(t, plain, fixed).P != drift.Desired(desired, plain) {
		t.Error("one apply does not fix it")
	}
}
