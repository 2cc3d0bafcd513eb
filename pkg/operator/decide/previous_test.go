package decide_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// TestPreviousOf leaves out what the config names still, or uses for something else: objects would have it forever.
func TestPreviousOf(t *testing.T) {
	conv := func(change func(*config.Conventions)) *config.Conventions {
		c := &config.Conventions{FieldManager: "now", Hash: config.Hash{Annotation: "now/hash"}, Owner: config.Owner{Annotation: "now/owner"},
			Labels: map[string]string{"now/app": "a"}, Annotations: map[string]string{"now/note": "a"}, Previous: &config.Previous{}}
		change(c)
		return c
	}
	for reason, row := range map[string]struct {
		change func(*config.Conventions)
		want   drift.Previous
	}{
		"no previous": {func(c *config.Conventions) { c.Previous = nil }, drift.Previous{}},
		"all of it": {func(c *config.Conventions) {
			c.Previous = &config.Previous{FieldManager: "before", Hash: &config.PreviousHash{Label: "before/hash"}, Owner: &config.PreviousOwner{Annotation: "before/owner"}}
		}, drift.Previous{Manager: "before", Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"}},
		"nothing has changed": {func(c *config.Conventions) {
			c.Previous = &config.Previous{FieldManager: "now", Hash: &config.PreviousHash{Annotation: "now/hash"}, Owner: &config.PreviousOwner{Annotation: "now/owner"}}
		}, drift.Previous{}},
		"two keys swapped": {func(c *config.Conventions) {
			c.Previous = &config.Previous{Hash: &config.PreviousHash{Annotation: "now/owner"}, Owner: &config.PreviousOwner{Annotation: "now/hash"}}
		}, drift.Previous{}},
		"given by conventions now": {func(c *config.Conventions) {
			c.Previous = &config.Previous{Hash: &config.PreviousHash{Label: "now/app"}, Owner: &config.PreviousOwner{Annotation: "now/note"}}
		}, drift.Previous{}},
		"the same key as a label": {func(c *config.Conventions) { c.Previous.Hash = &config.PreviousHash{Label: "now/hash"} }, drift.Previous{Hash: drift.Key{Label: "now/hash"}}},
	} {
		must.Same(t, row.want, marks.PreviousOf(conv(row.change)), reason)
	}
}

// TestWithCurrentMarks: what is made once keeps what we own of it, gets the current marks, and the hash of what was
// made.
func TestWithCurrentMarks(t *testing.T) {
	p := onePipeline(func(op *config.Operator) {
		op.Conventions.Owner.Annotation, op.Conventions.FieldManager = "now/owner", "now"
	})
	p.Hash = drift.Key{Annotation: "now/hash"}
	p.Config.Conventions.Labels = map[string]string{"now/app": "a"}
	p.Downstreams[0].View.Previous = drift.Previous{Manager: "before", Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"}
	reference := []any{map[string]any{"uid": string(upstreamUID)}}
	doc := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "new"}, "metadata": map[string]any{"name": "a",
		"labels": map[string]any{"now/app": "a", "template": "x"}, "annotations": map[string]any{"now/hash": "v1-new"}, "ownerReferences": reference,
	}}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "made", "theirs": "x"}, "metadata": map[string]any{
		"name": "a", "labels": map[string]any{"before/hash": "v1-made", "theirs": "x"}, "annotations": map[string]any{"before/owner": "o", "kept": "x"},
		"managedFields": []any{map[string]any{"manager": "now", "operation": "Apply", "fieldsV1": map[string]any{
			"f:data":     map[string]any{"f:key": map[string]any{}},
			"f:metadata": map[string]any{"f:labels": map[string]any{"f:before/hash": map[string]any{}}, "f:annotations": map[string]any{"f:before/owner": map[string]any{}, "f:kept": map[string]any{}}},
		}}},
	}}}
	got, off := marks.WithCurrentMarks(p.Settings, doc, 0, upstreamUID, obj, "v1-made")
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "made"}, "metadata": map[string]any{"name": "a",
		"labels": map[string]any{"now/app": "a"}, "annotations": map[string]any{"now/hash": "v1-made", "kept": "x"}, "ownerReferences": reference}}
	must.Same(t, want, got)
	if diff := cmp.Diff(marks.Marks{Labels: []string{"before/hash"}, Annotations: []string{"before/owner", "now/owner"}, Managers: []string{"before"}}, off); diff != "" {
		t.Error(diff)
	}
	delete(doc["metadata"].(map[string]any), "ownerReferences")
	if got, off = marks.WithCurrentMarks(p.Settings, doc, 0, upstreamUID, obj, ""); operator.AsMap(operator.AsMap(got["metadata"])["annotations"])["now/hash"] != "v1-new" || off.OwnerUID != upstreamUID {
		t.Errorf("without a reference: %v, %v", got, off)
	}
}

// TestHasMarks: an object that this operator made under the previous names is not one of its upstreams.
func TestHasMarks(t *testing.T) {
	p := onePipeline(func(op *config.Operator) { op.Conventions.Owner.Annotation = "now/owner" })
	p.Hash = drift.Key{Annotation: "now/hash"}
	p.Previous = drift.Previous{Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"}
	for _, row := range []struct {
		annotations, labels map[string]string
		owner, hash         bool
	}{
		{nil, nil, false, false},
		{map[string]string{"": "x", "other": "x"}, map[string]string{"other": "x"}, false, false},
		{map[string]string{"now/owner": "x"}, nil, true, false},
		{map[string]string{"before/owner": "x"}, nil, true, false},
		{map[string]string{"now/hash": "x"}, nil, false, true},
		{nil, map[string]string{"before/hash": "x"}, false, true},
	} {
		u := upstreamObject()
		u.SetAnnotations(row.annotations)
		u.SetLabels(row.labels)
		if owner, hash := marks.HasOwnerMark(p.Settings, u), marks.HasHash(p.Settings, u); owner != row.owner || hash != row.hash {
			t.Errorf("annotations %v, labels %v: owner %v, hash %v", row.annotations, row.labels, owner, hash)
		}
	}
}
