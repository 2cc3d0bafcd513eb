package apply

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

const nobody = types.UID("11111111-2222-3333-4444-555555555555")

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: "1"}}`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "registry.example.com/web:1"}]}
`

func TestCreate(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	made := f.create(tg, configMap)
	if want := `{"f:data":{"f:mine":{}}}`; entry(made, ours, metav1.ManagedFieldsOperationApply, "") != want {
		t.Errorf("made with the entries %v, want one Apply entry of ours with %s", made.GetManagedFields(), want)
	}

	_, err := f.c.Create(t.Context(), tg, doc(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: "2"}}`))
	expectError(t, err, ErrExists, ReasonAlreadyExists)
	if got := field(t, f.get(tg), "data", "mine"); got != "1" {
		t.Errorf("an object that existed was changed to %v", got)
	}
	if want := []string{"apply configmaps 200", "apply configmaps 409"}; !slices.Equal(f.requests, want) {
		t.Errorf("the observer heard %v, want %v: one request each", f.requests, want)
	}
}

func TestCreateLeavesTerminatingAlone(t *testing.T) {
	f := setup(t)
	tg := f.terminating("a")
	_, err := f.c.Create(t.Context(), tg, doc(t, configMap))
	expectError(t, err, ErrExists, ReasonAlreadyExists)
}

// terminating makes a ConfigMap that is being deleted and has a finalizer until the test ends.
func (f *fixture) terminating(name string) Target {
	f.Helper()
	testkit.Apply(f.T, f.ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, finalizers: [example.com/hold]}}`)
	f.Cleanup(func() {
		_, err := testkit.Dynamic(f.T).Resource(configMaps).Namespace(f.ns).Patch(context.Background(), name, // the context of the test has ended
			types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		if err != nil {
			f.Error(err)
		}
	})
	testkit.Delete(f.T, configMaps, f.ns, name)
	return f.target(configMaps, name)
}

func TestApplyNeedsTheUID(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")

	_, err := f.c.Apply(t.Context(), tg, nobody, doc(t, configMap))
	expectError(t, err, ErrGone, ReasonNotFound)
	if testkit.Find(t, configMaps, f.ns, "a") != nil {
		t.Error("an apply for an object that is gone made a new one")
	}

	first := f.create(tg, configMap)
	f.replace(tg, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {theirs: "1"}}`)
	for _, apply := range []func() error{
		func() error { _, err := f.c.Apply(t.Context(), tg, first.GetUID(), first.Object); return err },
		func() error { _, err := f.c.DryRunApply(t.Context(), tg, first.GetUID(), first.Object); return err },
	} {
		expectError(t, apply(), ErrReplaced, ReasonReplaced)
	}
	must.Same[any](t, map[string]any{"theirs": "1"}, field(t, f.get(tg), "data"), "another object that took the name was changed")
	if _, err := f.c.Apply(t.Context(), tg, "", first.Object); err == nil {
		t.Error("an apply without a uid was sent")
	}
}

// TestApplyIsAdoption: an object of another manager is taken over by its uid, and the Update entry keeps what we do not
// apply.
func TestApplyIsAdoption(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	theirs := testkit.Apply(t, f.ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: "0", theirs: "1"}}`)
	out := f.apply(tg, theirs.GetUID(), configMap)
	must.Same[any](t, map[string]any{"mine": "1", "theirs": "1"}, field(t, out, "data"), "adopted data")
	must.Same(t, `{"f:data":{"f:mine":{}}}`, entry(out, ours, metav1.ManagedFieldsOperationApply, ""), "we own")
}

func TestApplyIsNeverSentManagedFields(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	live := f.create(tg, configMap) // carries managedFields, uid, resourceVersion and creationTimestamp
	if len(live.GetManagedFields()) == 0 {
		t.Fatal("the API server gave no managedFields")
	}
	f.apply(tg, live.GetUID(), configMap)
	if _, err := f.c.Apply(t.Context(), tg, live.GetUID(), live.Object); err != nil {
		t.Errorf("applying an object as it was read: %v", err)
	}
}

func TestDryRunApply(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	live := f.create(tg, configMap)
	out := must.Get(f.c.DryRunApply(t.Context(), tg, live.GetUID(),
		doc(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: "2"}}`))).In(t)
	if field(t, out, "data", "mine") != "2" || field(t, f.get(tg), "data", "mine") != "1" {
		t.Error("a dry run must return what would be stored, and store nothing")
	}
}

func TestApplyNumbersAndText(t *testing.T) {
	f := setup(t)
	tg := f.target(widgets, "a")
	text := "\x00\x1f\x7f\u0080\u0085\u009f\u2028\u2029\ufeff\ufffe\uffff😀 {{ .x }}\n---\nkind: Secret\n"
	spec := map[string]any{
		"number": int64(9007199254740993),
		"text":   text,
		"free":   map[string]any{"i": int64(-9223372036854775808), "f": 0.1, "on": "on", "k\u0085": "1.10"},
	}
	obj := map[string]any{"apiVersion": "tools.example.com/v1", "kind": "Widget", "spec": spec}
	out := must.Get(f.c.Create(t.Context(), tg, obj)).In(t)
	must.Same[any](t, spec, field(t, out, "spec"), "stored (-sent +stored)")
	if _, ok := obj["metadata"]; ok {
		t.Error("the given object was changed")
	}
}

func TestNull(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	made := f.create(tg, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {mine: "1"}}, data: {mine: "1"}}`)
	before := entry(made, ours, metav1.ManagedFieldsOperationApply, "")
	live := testkit.Patch(t, configMaps, f.ns, "a", "kubectl-edit",
		`{"metadata": {"labels": {"a.b/c": "x"}}, "data": {"theirs": "1", "mine": "1"}}`)

	paths := parse(".data.theirs", ".metadata.labels['a.b/c']")
	_, err := f.c.Null(t.Context(), tg, live.GetUID(), made.GetResourceVersion(), paths)
	expectError(t, err, ErrConflict, ReasonChanged)

	out := must.Get(f.c.Null(t.Context(), tg, live.GetUID(), live.GetResourceVersion(), paths)).In(t)
	must.Same[any](t, map[string]any{"mine": "1"}, field(t, out, "data"), "data")
	must.Same(t, map[string]string{"mine": "1"}, out.GetLabels(), "labels")
	must.Same(t, before, entry(out, ours, metav1.ManagedFieldsOperationApply, ""), "our entry")
	must.Same(t, "", entry(out, ours, metav1.ManagedFieldsOperationUpdate, ""), "a patch of nulls made an Update entry of ours")

	// The same with a value, which is why Null accepts none.
	out = testkit.Patch(t, configMaps, f.ns, "a", ours, `{"data": {"mine": "2"}}`)
	if got := entry(out, ours, metav1.ManagedFieldsOperationApply, ""); got == before {
		t.Error("a merge patch with a value left our Apply entry alone; repairs could be merge patches")
	}
}

func TestNullOfAnotherObject(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	first := f.create(tg, configMap)
	second := f.replace(tg, configMap)

	_, err := f.c.Null(t.Context(), tg, first.GetUID(), second.GetResourceVersion(), parse(".data.mine"))
	expectError(t, err, ErrReplaced, ReasonReplaced)
	_, err = f.c.Null(t.Context(), tg, first.GetUID(), first.GetResourceVersion(), parse(".data.mine"))
	expectError(t, err, ErrReplaced, ReasonReplaced)
	testkit.Delete(t, configMaps, f.ns, "a")
	_, err = f.c.Null(t.Context(), tg, first.GetUID(), first.GetResourceVersion(), parse(".data.mine"))
	expectError(t, err, ErrGone, ReasonNotFound)
	for _, bad := range []struct{ uid, rv, path string }{{"", "1", ".data"}, {"u", "", ".data"}, {"u", "1", ".spec.list[0]"},
		{"u", "1", ".spec.list[name=a]"}} {
		f.requests = nil
		if _, err := f.c.Null(t.Context(), tg, types.UID(bad.uid), bad.rv, parse(bad.path)); err == nil || len(f.requests) > 0 {
			t.Errorf("%+v was sent", bad)
		}
	}
}
