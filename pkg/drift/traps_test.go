package drift_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
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
	got, err := resourceFor(t, ns, u.Object).Get(t.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func live(t *testing.T, v *drift.View, u *unstructured.Unstructured) *drift.Live {
	t.Helper()
	l, err := v.Live(u)
	if err != nil {
		t.Fatal(err)
	}
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

// TestServerForeignWrites: what a write by another client does to the projection and its explanation.
func TestServerForeignWrites(t *testing.T) {
	for name, test := range map[string]struct {
		reason         string
		manager, patch string
		drifted        bool
		changed        string
		shared         bool
	}{
		"value": {
			reason: "a changed value is no longer ours", manager: "kubectl-edit", patch: `{"spec":{"granular":{"a":"2"}}}`,
			drifted: true, changed: ".spec.granular.a by kubectl-edit",
		},
		"value under our own name": {
			reason: "an Update by the same name takes the field as well", manager: manager, patch: `{"spec":{"granular":{"a":"2"}}}`,
			drifted: true, changed: ".spec.granular.a by " + manager,
		},
		"same value": {
			reason: "a patch to the same value changes nothing, not even owners", manager: "kubectl-edit", patch: `{"spec":{"granular":{"a":"1"}}}`,
		},
		"another key": {
			reason: "a key in a granular map leaves ours alone", manager: "kubectl-edit", patch: `{"spec":{"granular":{"b":"2"}}}`,
		},
		"removed key": {
			reason: "a removed field has no owner", manager: "kubectl-edit", patch: `{"spec":{"granular":null}}`,
			drifted: true, changed: ".spec.granular by ",
		},
		"atomic list": {
			reason: "appending to an atomic list takes all of it", manager: "kubectl-edit", patch: `{"spec":{"atomicList":["b","a","c"]}}`,
			drifted: true, changed: ".spec.atomicList by kubectl-edit",
		},
		"atomic map": {
			reason: "a key in an atomic map takes all of it", manager: "kubectl-edit", patch: `{"spec":{"atomicMap":{"b":2}}}`,
			drifted: true, changed: ".spec.atomicMap.b by kubectl-edit",
		},
		"set": {
			reason: "adding to a set leaves ours alone", manager: "kubectl-edit", patch: `{"spec":{"set":["b","a","c"]}}`,
		},
		"list with keys": {
			reason: "adding an item leaves ours alone, wherever it stands", manager: "kubectl-edit",
			patch: `{"spec":{"keyed":[{"name":"new","port":1},{"name":"two","port":80,"value":"x"},{"name":"one","port":80}]}}`,
		},
		"order": {
			reason: "turning our items round changes no owner, but the order counts", manager: "kubectl-edit",
			patch: `{"spec":{"keyed":[{"name":"one","port":80},{"name":"two","port":80,"value":"x"}]}}`, drifted: true, changed: ".spec.keyed by " +
				manager,
		},
		"removed set item": {
			reason: "a value taken out of a set is missed", manager: "kubectl-edit", patch: `{"spec":{"set":["a","x"]}}`, drifted: true,
			changed: ".spec.set[0] by ",
		},
		"removed item": {
			reason: "a removed item is missed", manager: "kubectl-edit", patch: `{"spec":{"keyed":[{"name":"one","port":80}]}}`,
			drifted: true, changed: ".spec.keyed[name=two,port=80] by ",
		},
		"label": {
			reason: "somebody's annotation is foreign and no drift", manager: "kubectl-edit", patch: `{"metadata":{"annotations":{"x":"y"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns := memory(t)
			desired := canonical(t, parse(t, typedText))
			ours := apply(t, ns, manager, desired)
			theirs := merge(t, ns, test.manager, ours, test.patch)
			l := live(t, plain, theirs)
			if drifted := l.P != drift.Desired(desired, plain); drifted != test.drifted {
				t.Errorf("%s: drifted %v", test.reason, drifted)
			}
			if l.CoOwned != test.shared {
				t.Errorf("%s: co-owned %v", test.reason, l.CoOwned)
			}
			if got := paths(drift.Changed(desired, theirs, plain)); got != test.changed {
				t.Errorf("%s: changed %q, want %q", test.reason, got, test.changed)
			}
			fixed := apply(t, ns, manager, desired)
			if live(t, plain, fixed).P != drift.Desired(desired, plain) {
				t.Errorf("%s: one apply does not fix it: %s", test.reason, paths(drift.Changed(desired, fixed, plain)))
			}
		})
	}
}

// TestServerLost: the same value applied by another manager is co-owned, and omitting it does not remove it.
func TestServerLost(t *testing.T) {
	ns := memory(t)
	desired := canonical(t,
		parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: a}}, data: {one: "1", two: "2", three: "3"}}`))
	apply(t, ns, manager, desired)
	other := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {two: "2"}}`)
	before := apply(t, ns, "other", other)
	if l := live(t, plain, before); !l.CoOwned || l.P != drift.Desired(desired, plain) {
		t.Errorf("co-owned %v, as desired %v", l.CoOwned, l.P == drift.Desired(desired, plain))
	}
	less := canonical(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {one: "1"}}`))
	after := apply(t, ns, manager, less)
	var got []string
	for _, f := range drift.LostFields(before, after, manager) {
		got = append(got, f.Path.String()+" by "+f.Manager)
	}
	if diff := cmp.Diff([]string{".data.two by other"}, got); diff != "" {
		t.Error(diff)
	}
	if l := live(t, plain, after); l.P != drift.Desired(less, plain) {
		t.Error("a field that we gave up counts as drift")
	}
}

// TestServerTakenBack: after another client edited a field and we forced it back, nobody co-owns it.
func TestServerTakenBack(t *testing.T) {
	ns := memory(t)
	desired := canonical(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {one: "1", two: "2"}}`))
	u := apply(t, ns, manager, desired)
	merge(t, ns, "kubectl-edit", u, `{"data":{"two":"x"}}`)
	before := apply(t, ns, manager, desired)
	after := apply(t, ns, manager, canonical(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {one: "1"}}`)))
	lost := drift.LostFields(before, after, manager)
	_, lives, _ := unstructured.NestedString(after.Object, "data", "two")
	if lives != (len(lost) > 0) {
		t.Errorf("two lives on: %v, lost: %v", lives, lost)
	}
	if live(t, plain, before).CoOwned != lives {
		t.Errorf("two lives on: %v, co-owned before: %v", lives, live(t, plain, before).CoOwned)
	}
}

// TestServerExclusive: nulls remove what others added and keep our entry, so that the object is in sync at once.
func TestServerExclusive(t *testing.T) {
	ns := memory(t)
	v := &drift.View{Manager: manager, Exclusive: []fieldpath.Path{fieldpath.MustParse(".data")}}
	desired := canonical(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {one: "1"}}`))
	u := apply(t, ns, manager, desired)
	if l := live(t, v, u); l.P != drift.Desired(desired, v) || l.Extra {
		t.Error("it has extras from the start")
	}
	theirs := merge(t, ns, "kubectl-edit", u, `{"data":{"two.x":"2"}}`)
	l := live(t, v, theirs)
	if l.P == drift.Desired(desired, v) || !l.Extra {
		t.Error("an added key is no drift")
	}
	extras := drift.Extras(theirs, desired, v.Exclusive)
	if len(extras) != 1 || extras[0].String() != ".data['two.x']" {
		t.Fatalf("extras %v", extras)
	}
	again := apply(t, ns, manager, desired)
	if !live(t, v, again).Extra {
		t.Error("an apply removes extras, which no API server did before")
	}
	nulled := merge(t, ns, manager, u, `{"data":{"two.x":null}}`)
	if l := live(t, v, nulled); l.P != drift.Desired(desired, v) || l.Extra || !l.Managed {
		t.Errorf("after nulls: managed %v, extra %v", l.Managed, l.Extra)
	}
}

// TestServerForgedEntry: a forged entry with our name is read like any other; only the live values of the fields in it count.
func TestServerForgedEntry(t *testing.T) {
	ns := memory(t)
	desired := canonical(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: fast}}`))
	forged := &unstructured.Unstructured{Object: parse(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: slow, extra: x}}`)}
	forged.Object["metadata"].(map[string]any)["managedFields"] = []any{parse(t, `{manager: `+manager+`, operation: Apply, apiVersion: v1, fieldsType: FieldsV1,
 fieldsV1: {"f:data": {"f:mode": {}, "f:absent": {'k:{"a":1}': {}}}}}`)}
	u, err := resourceFor(t, ns, forged.Object).Create(t.Context(), forged, metav1.CreateOptions{FieldManager: "forger"})
	if err != nil {
		t.Fatal(err)
	}
	l := live(t, plain, u)
	if l.P == drift.Desired(desired, plain) {
		t.Error("forged managedFields make an object look as desired")
	}
	if fixed := apply(t, ns, manager, desired); live(t, plain, fixed).P != drift.Desired(desired, plain) {
		t.Error("one apply does not fix it")
	}
}
