package pipeline

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// Observing reports whether the config asks to decide and report, and to write nothing.
func (p *Pipeline) Observing() bool { return p.Config.Mode == config.ModeObserve }

// heldByObserve reports whether something would be done, or the API server asked, if mode were not Observe.
func heldByObserve(o Outcome) bool {
	return o.Action != ActionNone || o.State == StateWaiting && o.Theirs
}

// describeHeld says of what an outcome asks for that it is not done.
func describeHeld(o Outcome, differences string) string {
	text := o.Message
	switch {
	case o.Action == ActionNone:
		return text
	case o.State == StateRecreate:
		text = "would be deleted and recreated: " + text
	case o.State == StateRepair:
		text = "would be repaired: " + text
	case o.Action == ActionCreate:
		text = "would be created: " + text
	case o.Action == ActionDelete:
		text = "would be deleted: " + text
	case o.Action == ActionRelease:
		text = "would be released: " + text
	default:
		text = "would be updated: " + text
	}
	if differences != "" {
		text += " (" + differences + ")"
	}
	return text
}

// WouldChange says which fields an apply of downstream i's document would change, and who wrote them last, for
// Verdict.Differences. Those that the document does not have are told apart: many are defaults that stay as they are. owner is the upstream's uid; taken is live as it is once the fields of former managers are ours.
func (p *Pipeline) WouldChange(owner types.UID, i int, doc map[string]any, live, taken *unstructured.Unstructured) string {
	view := &p.Downstreams[i].View
	list := drift.Changed(doc, taken, view)
	nameWriters(list, drift.Changed(doc, live, view))
	var changed, left []drift.Difference
	for _, d := range p.withoutMarks(owner, i, list) {
		if d.Want == nil {
			left = append(left, d)
		} else {
			changed = append(changed, d)
		}
	}
	var parts []string
	if len(changed) > 0 {
		parts = append(parts, "would change "+drift.Explain(changed, p.Config.Conventions.FieldManager))
	}
	if len(left) > 0 { // only a dry run could tell what of this has a default
		parts = append(parts, "would remove, or reset to the API server's defaults, "+drift.Explain(left, p.Config.Conventions.FieldManager))
	}
	if len(parts) == 0 {
		return "only our marks would change"
	}
	return strings.Join(parts, "; ")
}

// nameWriters gives differences that were found after a takeover the writers that wrote them before it: after it they all
// read as ours.
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
func (p *Pipeline) withoutMarks(owner types.UID, i int, list []drift.Difference) []drift.Difference {
	marks := p.Marks(owner, i)
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

// onlyMarks reports whether labels or annotations differ by marks alone: it is about one key, or all where there are none.
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
