package drift_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// TestProjectionIsWhatWasApplied checks the premise of "in sync without a request", for the API server's responses to
// each document of the table.
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
	l := v.Live(live)
	// API servers before 1.31 store nulls in atomic lists. P counts what is stored and what is absent; a digest does not.
	text := must.Get(json.Marshal(projection)).In(t)
	whole := len(v.AbsentOf(live)) == 0 && !bytes.Contains(text, []byte(":null"))
	if (l.P == canonical.Digest(projection)) != whole {
		t.Errorf("%s: P is the digest of the projection: %v; absent are %v, of %s", d.reason, !whole, v.AbsentOf(live), text)
	}
	same := l.P == drift.Desired(d.desired, v)
	if want := d.normalized == ""; same != want {
		t.Errorf("%s: the projection is what was applied: %v, want %v (%s)\n%s", d.reason, same, want, d.normalized,
			cmp.Diff(d.desired, projection))
	}
}

// TestNothingChanged: what was just applied has no differences, apart from what the API server normalized, and none to
// the projection of the response.
func TestNothingChanged(t *testing.T) {
	for _, d := range documents(t) {
		t.Run(d.name, func(t *testing.T) {
			live := recorded(t, d.name)
			v := &drift.View{Manager: manager}
			if changed := drift.Changed(d.desired, live, v); (len(changed) > 0) != (d.normalized != "") {
				t.Errorf("%s: changed: %v, but normalized: %q", d.reason, changed, d.normalized)
			}
			projection, _ := drift.Project(live, manager)
			if changed := drift.Changed(projection, live, v); len(changed) > 0 {
				t.Errorf("changed against its own projection: %v", changed)
			}
			if l := v.Live(live); l.CoOwned || l.Extra {
				t.Errorf("co-owned %v, extra %v", l.CoOwned, l.Extra)
			}
		})
	}
}

// TestStreamedSum: P is computed in two ways; the fast one must have the same result.
func TestStreamedSum(t *testing.T) {
	for _, d := range documents(t) {
		live := recorded(t, d.name)
		// this view must build the projection, because of a field that does not exist
		slow := &drift.View{Manager: manager, Initial: []fieldpath.Path{fieldpath.MustParse(".none")}}
		if slow.SumOf(live) != (&drift.View{Manager: manager}).SumOf(live) {
			t.Errorf("%s: P is another one where the projection is built", d.name)
		}
	}
}
