package managed

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Entry is one element of metadata.managedFields.
type Entry struct {
	Manager, Operation, Subresource, time string
	Owned                                 Fields
}

// Entries returns the elements of u's managedFields that own anything, in order. Invalid ones are skipped.
func Entries(u *unstructured.Unstructured) []Entry {
	list := managedFields(u.Object)
	out := make([]Entry, 0, len(list))
	for _, item := range list {
		if e, ok := readEntry(item); ok {
			out = append(out, e)
		}
	}
	return out
}

func managedFields(obj map[string]any) []any {
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return list
}

func readEntry(item any) (Entry, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return Entry{}, false
	}
	var e Entry
	if e.Owned, ok = m["fieldsV1"].(map[string]any); !ok {
		return Entry{}, false
	}
	e.Manager, _ = m["manager"].(string)
	e.Operation, _ = m["operation"].(string)
	e.Subresource, _ = m["subresource"].(string)
	e.time, _ = m["time"].(string)
	return e, true
}

// Applied reports whether e records what manager applied to the object itself. An Update with the same name is another
// manager for the API server, and so is an apply to a subresource.
func (e *Entry) Applied(manager string) bool {
	return e.Manager == manager && e.Operation == "Apply" && e.Subresource == ""
}

// IsOlderThan reports whether the entry was written that long before a time in seconds since 1970.
func (e *Entry) IsOlderThan(created int64, by time.Duration) bool {
	at, err := time.Parse(time.RFC3339, e.time)
	return err == nil && time.Unix(created, 0).Sub(at) > by
}

// WritesStatus reports whether the entry owns anything in the status.
func (e Entry) WritesStatus() bool {
	_, ok := e.Owned.Field("status")
	return ok
}

// Find returns the index of manager's entry, or -1. The API server keeps at most one; if a forged object has several,
// the first one counts.
func Find(es []Entry, manager string) int {
	for i := range es {
		if es[i].Applied(manager) {
			return i
		}
	}
	return -1
}

// Owned returns what manager owns by apply, false if it has no entry.
func Owned(u *unstructured.Unstructured, manager string) (Fields, bool) {
	for _, item := range managedFields(u.Object) {
		if e, ok := readEntry(item); ok && e.Applied(manager) {
			return e.Owned, true
		}
	}
	return nil, false
}

// maxManagers limits the entries that are used to explain a difference: the API server keeps ten for updates, and
// anyone who can write an object can add others.
const maxManagers = 64

// Latest returns manager's entry and the latest of the others, up to maxManagers.
func Latest(es []Entry, manager string) []Entry {
	if len(es) <= maxManagers {
		return es
	}
	sorted := slices.Clone(es)
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		if ours := a.Applied(manager); ours != b.Applied(manager) {
			if ours {
				return -1
			}
			return 1
		}
		return compareWriters(&a, &b)
	})
	return sorted[:maxManagers]
}

func compareWriters(a, b *Entry) int {
	return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.Manager, b.Manager))
}
