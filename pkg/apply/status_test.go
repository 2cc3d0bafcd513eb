package apply

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

const widget = `{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: a}, spec: {text: x}}`

func (f *fixture) applyStatus(tg Target, uid types.UID, status map[string]any) (*unstructured.Unstructured, error) {
	return f.c.ApplyStatus(f.Context(), tg, "tools.example.com/v1", "Widget", true, uid, status)
}

func conditions(types ...string) []any {
	var out []any
	for _, t := range types {
		out = append(out, map[string]any{"type": t, "status": "True"})
	}
	return out
}

func TestApplyStatus(t *testing.T) {
	f := setup(t)
	tg := f.target(widgets, "a")
	made := f.create(tg, widget)
	main := entry(made, ours, metav1.ManagedFieldsOperationApply, "")
	testkit.Patch(t, widgets, f.ns, "a", "other", `{"status": {"conditions": [{"type": "Theirs", "status": "True"}]}}`, "status")

	f.requests = nil
	out := must.Get(f.applyStatus(tg, made.GetUID(), map[string]any{"phase": "Up", "conditions": conditions("Ready", "Valid")})).In(t)
	if want := []string{"apply widgets.tools.example.com/status 200"}; !slices.Equal(f.requests, want) {
		t.Errorf("the observer heard %v, want %v", f.requests, want)
	}
	must.Same(t, main, entry(out, ours, metav1.ManagedFieldsOperationApply, ""), "what we own of the main resource")
	if entry(out, ours, metav1.ManagedFieldsOperationApply, "status") == "" {
		t.Errorf("the status has no entry of its own: %v", managers(out))
	}
	if field(t, out, "spec", "text") != "x" {
		t.Error("a status apply dropped the spec")
	}

	// Our list is that of the last apply; items of others are merged by key and stay.
	out = must.Get(f.applyStatus(tg, made.GetUID(), map[string]any{"conditions": conditions("Ready")})).In(t)
	want := map[string]any{"conditions": conditions("Theirs", "Ready")}
	must.Same[any](t, want, field(t, out, "status"), "status")
	// An apply of the main resource does not change the status, even if it contains one.
	out = f.apply(tg, made.GetUID(),
		`{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: a}, spec: {text: x}, status: {phase: Down}}`)
	must.Same[any](t, want, field(t, out, "status"), "status after an apply of the main resource")
}

func TestApplyStatusWithoutSubresource(t *testing.T) {
	f := setup(t)
	tg := f.target(singletons, "default")
	other := testkit.Apply(t, f.ns, `{apiVersion: tools.example.com/v1, kind: Singleton, metadata: {name: default}, spec: {size: 3}}`)
	write := func(subresource bool, uid types.UID) (*unstructured.Unstructured, error) {
		return f.c.ApplyStatus(t.Context(), tg, "tools.example.com/v1", "Singleton", subresource, uid, map[string]any{"phase": "Up"})
	}
	out, err := write(false, other.GetUID())
	if err != nil {
		t.Fatal(err)
	}
	if field(t, out, "status", "phase") != "Up" || field(t, out, "spec", "size") != int64(3) {
		t.Errorf("stored %v", out.Object)
	}
	_, err = write(true, other.GetUID())
	expectError(t, err, nil, ReasonKindNotServed) // not gone: the object exists, the subresource does not
	messageContains(t, err, "singletons.tools.example.com/status", "that subresource")
	_, err = write(false, nobody)
	expectError(t, err, ErrReplaced, ReasonReplaced)
	testkit.Delete(t, singletons, f.ns, "default")
	_, err = write(false, other.GetUID())
	expectError(t, err, ErrGone, ReasonNotFound)
	if testkit.Find(t, singletons, f.ns, "default") != nil {
		t.Error("a status for an object that is gone made a new one")
	}
}

func TestStatusOfAnotherObject(t *testing.T) {
	f := setup(t)
	tg := f.target(widgets, "a")
	first := f.create(tg, widget)
	f.replace(tg, widget)
	status := map[string]any{"phase": "Up"}

	_, err := f.c.PatchStatus(t.Context(), tg, true, first.GetResourceVersion(), first.GetUID(), status)
	expectError(t, err, ErrReplaced, ReasonReplaced)
	if field(t, f.get(tg), "status") != nil {
		t.Error("another object that took the name was given a status")
	}

	_, err = f.applyStatus(tg, first.GetUID(), status)
	expectError(t, err, ErrReplaced, ReasonReplaced)
	if field(t, f.get(tg), "status") == nil {
		t.Error("the status subresource heeds a uid now; the comment at ApplyStatus is out of date")
	}

	testkit.Delete(t, widgets, f.ns, "a")
	_, err = f.applyStatus(tg, first.GetUID(), status)
	expectError(t, err, ErrGone, ReasonNotFound)
	_, err = f.c.PatchStatus(t.Context(), tg, true, first.GetResourceVersion(), first.GetUID(), status)
	expectError(t, err, ErrGone, ReasonNotFound)
}

func TestPatchStatus(t *testing.T) {
	f := setup(t)
	tg := f.target(widgets, "a")
	made := f.create(tg, widget)
	main := entry(made, ours, metav1.ManagedFieldsOperationApply, "")
	status := map[string]any{"phase": "Up", "conditions": conditions("Ready")}

	out, err := f.c.PatchStatus(t.Context(), tg, true, made.GetResourceVersion(), made.GetUID(), status)
	if err != nil {
		t.Fatal(err)
	}
	must.Same[any](t, status, field(t, out, "status"), "status")
	must.Same(t, main, entry(out, ours, metav1.ManagedFieldsOperationApply, ""), "what we own of the main resource")
	_, err = f.c.PatchStatus(t.Context(), tg, true, made.GetResourceVersion(), made.GetUID(), status)
	expectError(t, err, ErrConflict, ReasonChanged)

	again, err := f.c.PatchStatus(t.Context(), tg, true, out.GetResourceVersion(), made.GetUID(), status)
	if err != nil || again.GetResourceVersion() != out.GetResourceVersion() {
		t.Errorf("a patch that changes nothing wrote something: %v", err)
	}
	out = must.Get(f.c.PatchStatus(t.Context(), tg, true, out.GetResourceVersion(), made.GetUID(), map[string]any{"phase": nil})).In(t)
	must.Same[any](t, map[string]any{"conditions": conditions("Ready")}, field(t, out, "status"), "nil removes a field")
}
