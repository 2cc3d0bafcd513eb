package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// TestProjectionIsWhatWasApplied is the promise that "in sync without a request" stands on, over what an API server
// answered to each document of the table.
func TestProjectionIsWhatWasApplied(t *testing.T) {
	for _, d := range documents(t) {
		t.Run(d.name, func(t *testing.T) { checkProjection(t, d, recorded(t, d.name)) })
	}
}

func checkProjection(t *testing.T, d document, live *unstructured.Unstructured) {
	t.Helper()
	v := &drift.View{Manager: manager}
	projection, ok := drift.Project(live, manager)
	if !ok {
		t.Fatalf("%s: no entry of ours in %v", d.reason, live.GetManagedFields())
	}
	l, err := v.Live(live)
	if err != nil {
		t.Fatal(err)
	}
	if l.P != drift.Digest(projection) {
		t.Errorf("%s: P is not the digest of the projection", d.reason)
	}
	same := l.P == drift.Desired(d.desired, v)
	if want := d.normalised == ""; same != want {
		t.Errorf("%s: the projection is what was applied: %v, want %v (%s)\n%s", d.reason, same, want, d.normalised,
			cmp.Diff(d.desired, projection))
	}
}
