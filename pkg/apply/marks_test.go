package apply

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestFinalizer(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	made := f.create(tg, configMap)
	before := entry(made, ours, metav1.ManagedFieldsOperationApply, "")

	added, err := f.c.AddFinalizer(t.Context(), tg, made, "example.com/first")
	if err != nil {
		t.Fatal(err)
	}
	if added, err = f.c.AddFinalizer(t.Context(), tg, added, "example.com/second"); err != nil {
		t.Fatal(err)
	}
	if got, want := added.GetFinalizers(), []string{"example.com/first", "example.com/second"}; !slices.Equal(got, want) {
		t.Errorf("finalizers are %v, want %v", got, want)
	}
	must.Same(t, before, entry(added, ours, metav1.ManagedFieldsOperationApply, ""), "our Apply entry")
	if field(t, added, "data", "mine") != "1" {
		t.Error("adding a finalizer dropped what was applied")
	}

	// A later apply by the same manager keeps finalizers, because it never had them.
	if out := f.apply(tg, made.GetUID(), configMap); len(out.GetFinalizers()) != 2 {
		t.Errorf("an apply left the finalizers %v", out.GetFinalizers())
	}

	removed := must.Get(f.c.RemoveFinalizer(t.Context(), tg, f.get(tg), "example.com/first")).In(t)
	if got, want := removed.GetFinalizers(), []string{"example.com/second"}; !slices.Equal(got, want) {
		t.Errorf("finalizers are %v, want %v", got, want)
	}
	if removed, err = f.c.RemoveFinalizer(t.Context(), tg, removed, "example.com/second"); err != nil || len(removed.GetFinalizers()) != 0 {
		t.Errorf("the last one is not removed: %v, %v", removed, err)
	}
}

func TestFinalizerWithoutNeed(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	made := f.create(tg, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/hold]}}`)
	f.requests = nil
	if _, err := f.c.AddFinalizer(t.Context(), tg, made, "example.com/hold"); err != nil {
		t.Error(err)
	}
	if _, err := f.c.RemoveFinalizer(t.Context(), tg, made, "example.com/other"); err != nil {
		t.Error(err)
	}
	if len(f.requests) != 0 {
		t.Errorf("requests were made for nothing: %v", f.requests)
	}
	if _, err := f.c.RemoveFinalizer(t.Context(), tg, made, "example.com/hold"); err != nil {
		t.Error(err)
	}
}

func TestFinalizerOfChangedObject(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	stale := f.create(tg, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/hold]}}`)
	testkit.Patch(t, configMaps, f.ns, "a", "other", `{"metadata": {"finalizers": ["example.com/other", "example.com/hold"]}}`)

	_, err := f.c.AddFinalizer(t.Context(), tg, stale, "example.com/new")
	expectError(t, err, ErrConflict, ReasonChanged)
	_, err = f.c.RemoveFinalizer(t.Context(), tg, stale, "example.com/hold")
	expectError(t, err, ErrConflict, ReasonChanged)
	if got, want := f.get(tg).GetFinalizers(), []string{"example.com/other", "example.com/hold"}; !slices.Equal(got, want) {
		t.Errorf("finalizers are %v, want %v untouched", got, want)
	}

	testkit.Patch(t, configMaps, f.ns, "a", "other", `{"metadata": {"finalizers": null}}`)
	second := f.replace(tg, configMap)
	_, err = f.c.AddFinalizer(t.Context(), tg, stale, "example.com/new")
	expectError(t, err, ErrConflict, ReasonChanged)
	if got := f.get(tg); got.GetResourceVersion() != second.GetResourceVersion() {
		t.Error("another object that took the name was changed")
	}
	testkit.Delete(t, configMaps, f.ns, "a")
	_, err = f.c.RemoveFinalizer(t.Context(), tg, stale, "example.com/hold")
	expectError(t, err, ErrGone, ReasonNotFound)
}

// marked makes a ConfigMap "a" as an operator leaves it, and the marks on it. Its owner exists, because the garbage
// collector would delete it otherwise.
func (f *fixture) marked() (*unstructured.Unstructured, Marks) {
	f.Helper()
	owner := f.owner("mine")
	live := f.create(f.target(configMaps, "a"), `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {tools.example.com/managed-by: operator, keep: "1"}
  annotations: {tools.example.com/spec-hash: abc, tools.example.com/owner: x, keep: "1"}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: mine, uid: `+string(owner)+`, controller: true}]
data: {mine: "1"}
`)
	return live, Marks{
		OwnerUID:    owner,
		Labels:      []string{"tools.example.com/managed-by", "tools.example.com/absent"},
		Annotations: []string{"tools.example.com/spec-hash", "tools.example.com/owner", "tools.example.com/owner"},
	}
}

func (f *fixture) owner(name string) types.UID {
	f.Helper()
	return testkit.Apply(f.T, f.ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}}`).GetUID()
}

func TestRelease(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	_, marks := f.marked()
	first, last := f.owner("first"), f.owner("last")
	live := testkit.Patch(t, configMaps, f.ns, "a", "other", fmt.Sprintf(`{"metadata": {"labels": {"theirs": "1"}, "ownerReferences": [
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "first", "uid": %q},
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": %q, "controller": true},
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "last", "uid": %q}]}}`, first, marks.OwnerUID, last))
	f.requests = nil
	must.Get(f.c.Release(t.Context(), tg, live, marks)).In(t)
	got := f.get(tg)
	must.Same(t, map[string]string{"keep": "1", "theirs": "1"}, got.GetLabels(), "labels")
	must.Same(t, map[string]string{"keep": "1"}, got.GetAnnotations(), "annotations")
	var uids []types.UID
	for _, o := range got.GetOwnerReferences() {
		uids = append(uids, o.UID)
	}
	if want := []types.UID{first, last}; !slices.Equal(uids, want) {
		t.Errorf("owners are %v, want %v", uids, want)
	}
	must.Same[any](t, map[string]any{"mine": "1"}, field(t, got, "data"), "data")
	if m := managers(got); !slices.Equal(m, []string{"other Update "}) {
		t.Errorf("managers are %v, want the other alone", m)
	}
	if _, err := f.c.Release(t.Context(), tg, got, marks); err != nil {
		t.Error(err)
	}
	if want := []string{"patch configmaps 200"}; !slices.Equal(f.requests, want) {
		t.Errorf("the observer heard %v, want %v: nothing was left for a second request", f.requests, want)
	}
	// The next manager has no conflict with us.
	force := false
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"mine":"2"}}`)
	if _, err := f.c.resource(tg).Patch(t.Context(), "a", "application/apply-patch+yaml", body,
		metav1.PatchOptions{FieldManager: "successor", Force: &force}); err != nil {
		t.Errorf("a successor cannot apply: %v", err)
	}
}

// TestReleaseSoleManager: managedFields becomes empty, and the API server would ignore an empty list.
func TestReleaseSoleManager(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	live, marks := f.marked()
	live, err := f.c.AddFinalizer(t.Context(), tg, live, "example.com/hold") // makes an Update entry of ours, too
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.c.RemoveFinalizer(t.Context(), tg, live, "example.com/hold"); err != nil {
		t.Fatal(err)
	}
	must.Get(f.c.Release(t.Context(), tg, f.get(tg), marks)).In(t)
	got := f.get(tg)
	if m := managers(got); len(m) != 0 {
		t.Errorf("managers are %v, want none", m)
	}
	if len(got.GetOwnerReferences()) != 0 || field(t, got, "data", "mine") != "1" || got.GetLabels()["keep"] != "1" {
		t.Errorf("released to %v", got.Object)
	}
}

// TestReleaseCustomResource returns the same for kinds in which the API server restores an empty list.
func TestReleaseCustomResource(t *testing.T) {
	f := setup(t)
	tg := f.target(widgets, "a")
	live := f.create(tg,
		`{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: a, labels: {tools.example.com/app: a}}, spec: {text: a}}`)
	must.Get(f.c.Release(t.Context(), tg, live, Marks{Labels: []string{"tools.example.com/app"}})).In(t)
	got := f.get(tg)
	if m := managers(got); len(m) != 0 || len(got.GetLabels()) != 0 || field(t, got, "spec", "text") != "a" {
		t.Errorf("managers are %v of %v, want none", m, got.Object)
	}
}

func TestReleaseOfChangedObject(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	stale, marks := f.marked()
	live := testkit.Patch(t, configMaps, f.ns, "a", "other", `{"metadata": {"labels": {"theirs": "1"}}}`)
	_, err := f.c.Release(t.Context(), tg, stale, marks)
	expectError(t, err, ErrConflict, ReasonChanged)
	if got := f.get(tg); got.GetResourceVersion() != live.GetResourceVersion() {
		t.Error("a release that conflicted wrote something")
	}
	testkit.Delete(t, configMaps, f.ns, "a")
	if _, err := f.c.Release(t.Context(), tg, live, marks); err != nil {
		t.Errorf("nothing is left to release: %v", err)
	}
}
