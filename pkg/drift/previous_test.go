package drift_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// TestPrevious: entries to take over, and marks with previous names.
func TestPrevious(t *testing.T) {
	const object1 = "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {LABELS}, annotations: {ANNOTATIONS}, managedFields: [ENTRIES]}, " +
		"data: {a: x, b: y}}"
	entry := func(manager, operation, more string) string {
		return "{manager: " + manager + ", operation: " + operation + more + "}"
	}
	const both, onlyA = ", fieldsV1: {'f:data': {'f:a': {}, 'f:b': {}}}", ", fieldsV1: {'f:data': {'f:a': {}}}"
	view := drift.View{
		Manager: "now", Hash: drift.Key{Annotation: "now/hash"}, OwnerAnnotation: "now/owner", Adopt: []string{"helm"},
		Previous: drift.Previous{Manager: "before", Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"},
	}
	type facts struct {
		Hash, OwnerMark                                   string
		Managed, NeedsTakeover, HasPreviousNames, CoOwned bool
	}
	for _, test := range []struct {
		reason, labels, annotations, entries string
		want                                 facts
	}{
		{"all is of now", "", "now/hash: h, now/owner: o", entry("now", "Apply", both), facts{Hash: "h", OwnerMark: "o", Managed: true}},
		{"all is of before", "before/hash: h", "before/owner: o", entry("before", "Apply", both),
			facts{Hash: "h", OwnerMark: "o", Managed: true, NeedsTakeover: true, HasPreviousNames: true}},
		{"what is of now counts where both are", "before/hash: h1", "now/hash: h2, before/owner: o1, now/owner: o2", entry("now", "Apply", both),
			facts{Hash: "h2", OwnerMark: "o2", Managed: true, HasPreviousNames: true}},
		{"the key of the hash alone was renamed", "before/hash: h", "now/owner: o", entry("now", "Apply", both),
			facts{Hash: "h", OwnerMark: "o", Managed: true, HasPreviousNames: true}},
		{"the annotation of the owner alone was renamed", "", "now/hash: h, before/owner: o", entry("now", "Apply", both),
			facts{Hash: "h", OwnerMark: "o", Managed: true, HasPreviousNames: true}},
		{"the manager of before is no stranger beside ours", "", "", entry("now", "Apply", onlyA) + ", " + entry("before", "Apply", both),
			facts{Managed: true, NeedsTakeover: true, HasPreviousNames: true}},
		{"an Update by the manager of before is taken over, too, though it is no apply of ours", "", "", entry("before", "Update", onlyA),
			facts{NeedsTakeover: true, HasPreviousNames: true}},
		{"a manager to adopt from is another one until then, and no name of before", "", "", entry("now", "Apply", onlyA) + ", " +
			entry("helm", "Update", both),
			facts{Managed: true, NeedsTakeover: true, CoOwned: true}},
		{"an entry for a subresource is left to its writer", "", "", entry("now", "Apply", both) + ", " +
			entry("helm", "Update", ", subresource: status"+both) +
			", " + entry("before", "Apply", ", subresource: status"+both), facts{Managed: true, CoOwned: true}},
		{"somebody else", "", "", entry("now", "Apply", onlyA) + ", " + entry("kubectl", "Update", both),
			facts{Managed: true, CoOwned: true}},
		{"an entry without a name is nobody's", "", "", entry("''", "Apply", both), facts{}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			l := view.Live(object(t, strings.NewReplacer("LABELS", test.labels, "ANNOTATIONS", test.annotations, "ENTRIES",
				test.entries).Replace(object1)))
			got := facts{l.Hash, l.OwnerMark, l.Managed, l.NeedsTakeover, l.HasPreviousNames, l.CoOwned}
			must.Same(t, test.want, got)
		})
	}
	nothing := drift.View{Manager: "now"}
	l := nothing.Live(object(t, strings.NewReplacer("LABELS", "", "ANNOTATIONS", "", "ENTRIES",
		entry("''", "Apply", both)).Replace(object1)))
	if l.NeedsTakeover || l.HasPreviousNames || l.Hash != "" || l.OwnerMark != "" {
		t.Errorf("a view without former names finds some: %+v", l)
	}
}

// TestTakeoverInitialFields: an initial field that only the previous manager set counts as ours.
func TestTakeoverInitialFields(t *testing.T) {
	view := drift.View{Manager: "now", Previous: drift.Previous{Manager: "before"},
		Initial: []fieldpath.Path{fieldpath.MustParse(".spec.replicas")}}
	l := view.Live(object(t,
		"{apiVersion: apps/v1, kind: Deployment, metadata: {managedFields: [{manager: before, operation: Apply, fieldsV1: {'f:spec': "+
			"{'f:replicas': {}}}}]}, spec: {replicas: 3}}"))
	want := []drift.InitialField{{Ours: true, Value: int64(3), Present: true}}
	must.Same(t, want, l.Initial)
}

func TestTakeoverManagers(t *testing.T) {
	for reason, test := range map[string]struct {
		view drift.View
		want []string
	}{
		"none":              {drift.View{}, nil},
		"adopted from":      {drift.View{Adopt: []string{"helm"}}, []string{"helm"}},
		"before":            {drift.View{Previous: drift.Previous{Manager: "before"}}, []string{"before"}},
		"before and others": {drift.View{Adopt: []string{"helm"}, Previous: drift.Previous{Manager: "before"}}, []string{"before", "helm"}},
	} {
		must.Same(t, test.want, test.view.TakeoverManagers(), reason)
	}
}
