package marks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// WouldChange says which fields an apply of downstream i's document would change, and who wrote them last, for
// Verdict.Differences. Those that the document does not have are listed apart: many are defaults that stay as they are.
// owner is the upstream's uid; taken is live as it is once the fields of former managers are ours.
func WouldChange(
	s *operator.Settings, owner types.UID, i int, doc map[string]any, live, taken *unstructured.Unstructured,
) string {
	view := &s.Downstreams[i].View
	list := drift.Changed(doc, taken, view)
	nameWriters(list, drift.Changed(doc, live, view))
	var changed, left []drift.Difference
	for _, d := range withoutMarks(s, owner, i, list) {
		if d.Want == nil {
			left = append(left, d)
		} else {
			changed = append(changed, d)
		}
	}
	var parts []string
	if len(changed) > 0 {
		parts = append(parts, "would change "+drift.Explain(changed, s.Config.Conventions.FieldManager))
	}
	if len(left) > 0 { // only a dry run could show what of this has a default
		parts = append(parts, "would remove, or reset to the API server's defaults, "+drift.Explain(left,
			s.Config.Conventions.FieldManager))
	}
	if len(parts) == 0 {
		return "only our marks would change"
	}
	return strings.Join(parts, "; ")
}

// nameWriters gives differences that were found after a takeover the writers that wrote them before it: after it they
// all read as ours.
func nameWriters(list, before []drift.Difference) {
	writers := make(map[string]string, len(before))
	for _, d := range before {
		writers[d.Path.String()] = d.Manager
	}
	for i := range list {
		list[i].Manager = writers[list[i].Path.String()]
	}
}

// withoutMarks leaves out what only says whose the object is.
func withoutMarks(s *operator.Settings, owner types.UID, i int, list []drift.Difference) []drift.Difference {
	marks := Of(s, owner, i)
	return slices.DeleteFunc(list, func(d drift.Difference) bool {
		if len(d.Path) < 2 || d.Path[0].Field != "metadata" {
			return false
		}
		switch d.Path[1].Field {
		case "ownerReferences":
			return true
		case "labels":
			return onlyMarks(d, marks.Labels)
		case "annotations":
			return onlyMarks(d, marks.Annotations)
		}
		return false
	})
}

// onlyMarks reports whether labels or annotations differ by marks alone: it is about one key, or all where there are
// none.
func onlyMarks(d drift.Difference, marks []string) bool {
	if len(d.Path) > 2 {
		return slices.Contains(marks, d.Path[2].Field)
	}
	want, ok := d.Want.(map[string]any)
	for key := range want {
		ok = ok && slices.Contains(marks, key)
	}
	return ok && d.Have == nil
}
