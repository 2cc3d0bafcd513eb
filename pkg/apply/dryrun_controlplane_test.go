//go:build controlplane

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestStored: a removed field gets its default, an invalid one is refused, and managedFields stay as given, whatever
// client is used.
func TestStored(t *testing.T) {
	f := setupFor(t, testkit.Config(t))
	before := posted(f, "helm")
	at := f.target(deployments, "a")
	want := before.DeepCopy()
	for _, path := range [][]string{{"spec", "progressDeadlineSeconds"}, {"spec", "strategy"}, {"spec", "paused"},
		{"metadata", "labels", "theirs"}} {
		unstructured.RemoveNestedField(want.Object, path...)
	}
	got, err := f.c.WouldStore(t.Context(), at, want)
	if err != nil {
		t.Fatal(err)
	}
	if field(t, got, "spec", "progressDeadlineSeconds") != int64(600) || field(t, got, "spec", "strategy", "type") != "RollingUpdate" ||
		field(t, got, "spec", "paused") != nil || got.GetLabels()["theirs"] != "" || len(got.GetManagedFields()) != 1 ||
		got.GetManagedFields()[0].Manager != "helm" {
		t.Errorf("it would be %v", got.Object)
	}
	unstructured.RemoveNestedField(want.Object, "spec", "selector")
	_, err = f.c.WouldStore(t.Context(), at, want)
	expectError(t, err, nil, ReasonRejected)
	if after := f.get(at); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the object was written: %v", after)
	}
	testkit.Patch(t, deployments, f.ns, "a", "other", `{"spec": {"paused": null}}`)
	_, err = f.c.WouldStore(t.Context(), at, before)
	expectError(t, err, ErrConflict, ReasonChanged)
}
