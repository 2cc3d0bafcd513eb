package findings

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// What a plan has beside the actions of a survey.
const (
	// ActionFinalizer: the finalizer would be put on the upstream, or taken off it.
	ActionFinalizer = "finalizer"
	// ActionLeftover: an object that nothing looks after.
	ActionLeftover = "leftover"
)

// Item is one object of a plan.
type Item struct {
	About
	Action  string
	Risk    string
	Note    string
	Failure *operator.Failure
	Diffs   []docdiff.Field
	Before  map[string]any
	After   map[string]any
	// Words are all that is shown of the object where it can hold values of a Secret.
	Words redact.Words
	// hash is where the hash rides, which changes with everything else.
	hash fieldpath.Path
}

// Shown are an item's differences less that of the hash, which says nothing beside the others.
func (i *Item) Shown() []docdiff.Field {
	if len(i.Diffs) < 2 {
		return i.Diffs
	}
	return slices.DeleteFunc(slices.Clone(i.Diffs), func(d docdiff.Field) bool { return d.Path.Equal(i.hash) })
}

// Items are the objects of one upstream, the upstream first if its finalizer changes.
func Items(pl *compile.Pipeline, f *preview.Finding) []Item {
	list := Finalizer(pl, f)
	for _, c := range f.Changes {
		if IsAboutNothing(c) {
			continue
		}
		item := ItemOf(pl, f, c)
		if c.State == operator.StateInvalid {
			item.Reason = invalidity(f)
		}
		list = append(list, item)
	}
	return append(list, ForgottenItems(pl, f)...)
}

// ForgottenItems are the objects that only the status of an upstream records.
func ForgottenItems(pl *compile.Pipeline, f *preview.Finding) (list []Item) {
	for _, r := range f.Forgotten {
		about := aboutForgotten(pl, f, r, WhyForgotten(r))
		list = append(list, Item{About: about, Action: ActionLeftover, Note: r.Note})
	}
	return list
}

// Finalizer is the item of an upstream whose finalizer changes; none if it does not.
func Finalizer(pl *compile.Pipeline, f *preview.Finding) []Item {
	text := FinalizerText(pl, f)
	if text == "" {
		return nil
	}
	up := Upstream(pl, f)
	return []Item{{About: About{Operator: f.Operator, Upstream: up, Object: up, Reason: text}, Action: ActionFinalizer}}
}

// ItemOf is a change as a plan has it.
func ItemOf(pl *compile.Pipeline, f *preview.Finding, c preview.Change) Item {
	item := Item{About: aboutChange(pl, f, c), Action: string(c.Action), Risk: c.Risk, Note: c.Note, Failure: c.Failure,
		Before: contentOf(c.Before), After: contentOf(c.After), Words: wordsOf(pl, c.Index)}
	hash := pl.Config.Conventions.Hash
	if item.hash = fieldpath.New("metadata", "annotations", hash.Annotation); hash.Label != "" {
		item.hash = fieldpath.New("metadata", "labels", hash.Label)
	}
	switch c.Action {
	case preview.Create:
		item.Diffs = created(c.Document, item.Words)
	case preview.Delete, preview.Supersede, preview.None:
	case preview.Refuse:
		if c.Before != nil && c.Document != nil {
			item.Diffs = fieldDiffs(c, item.Words)
		}
	default:
		if c.After != nil {
			item.Diffs = docdiff.Documents(item.Before, item.After, item.Words)
		}
		if c.Action == preview.Repair || c.Action == preview.Leave {
			item.Diffs = withWriters(item.Diffs, c.Drift)
		}
		if item.Note == "" && c.Before != nil && c.After != nil && len(item.Diffs) == 0 && c.Action.Writes() {
			item.Note = "no value changes, only who owns the fields"
		}
	}
	return item
}

// withWriters adds who wrote a field last, where it is no longer as it was applied.
func withWriters(list []docdiff.Field, found []drift.Difference) []docdiff.Field {
	for i := range list {
		for _, d := range found {
			if d.Path.HasPrefix(list[i].Path) && d.Have != nil {
				list[i].Writer = d.Manager
			}
		}
	}
	return list
}

// fieldDiffs are our fields as they are and as they were wanted, where the API server made nothing of them.
func fieldDiffs(c preview.Change, words redact.Words) []docdiff.Field {
	var list []docdiff.Field
	for _, d := range docdiff.Documents(contentOf(c.Before), c.Document, words) {
		if d.After != nil { // what only the live object has is not ours to take away
			list = append(list, d)
		}
	}
	return list
}

// created are the fields of a new document, less what the line above them says already.
func created(doc map[string]any, words redact.Words) []docdiff.Field {
	identity := [][]string{{"apiVersion"}, {"kind"}}
	list := slices.DeleteFunc(docdiff.Documents(nil, doc, words), func(d docdiff.Field) bool {
		return slices.ContainsFunc(identity, func(path []string) bool { return d.Path.Equal(fieldpath.New(path...)) })
	})
	for i := range list {
		if meta, ok := list[i].After.(map[string]any); ok && list[i].Path.Equal(fieldpath.New("metadata")) {
			meta = maps.Clone(meta)
			delete(meta, "name")
			delete(meta, "namespace")
			list[i].After = meta
		}
	}
	return list
}

func contentOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	u.SetManagedFields(nil)
	return u.Object
}

// wordsOf are all that is shown of the objects of a downstream by its index; nil if all of them is.
func wordsOf(pl *compile.Pipeline, index int) redact.Words {
	switch {
	case index >= 0 && index < len(pl.Downstreams):
		return pl.Downstreams[index].Words
	case index == operator.BeforeIndex && pl.Before != nil:
		return pl.Before.Object.Words
	}
	return nil
}
