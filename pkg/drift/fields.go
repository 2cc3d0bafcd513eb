package drift

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// fields is one place in a manager's fieldsV1, as decoded JSON. Its keys are what the manager owns below that place; a place
// without keys, or with only ".", is owned as a whole: a scalar, an atomic map or list, or an empty one (which look the same).
type fields map[string]any

// ownDot marks a place that is owned itself, in addition to what is owned below it.
const ownDot = "."

// isLeaf reports whether nothing is owned below f, so that f is owned as a whole.
func (f fields) isLeaf() bool {
	switch len(f) {
	case 0:
		return true
	case 1:
		_, dot := f[ownDot]
		return dot
	default:
		return false
	}
}

// isMember reports whether the place itself is owned.
func (f fields) isMember() bool {
	if len(f) == 0 {
		return true
	}
	_, dot := f[ownDot]
	return dot
}

// below returns what is owned below one key of fieldsV1. Anything but a map is invalid there and owns nothing.
func (f fields) below(key string) (fields, bool) {
	m, ok := f[key].(map[string]any)
	return m, ok && m != nil
}

func (f fields) field(name string) (fields, bool) { return f.below("f:" + name) }

// entry is one element of metadata.managedFields.
type entry struct {
	manager, operation, subresource, time string
	owned                                 fields
}

// entries returns the elements of u's managedFields that own anything, in order. Invalid ones are skipped.
func entries(u *unstructured.Unstructured) []entry {
	list := managedFields(u.Object)
	out := make([]entry, 0, len(list))
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

func readEntry(item any) (entry, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return entry{}, false
	}
	var e entry
	if e.owned, ok = m["fieldsV1"].(map[string]any); !ok {
		return entry{}, false
	}
	e.manager, _ = m["manager"].(string)
	e.operation, _ = m["operation"].(string)
	e.subresource, _ = m["subresource"].(string)
	e.time, _ = m["time"].(string)
	return e, true
}

// applied reports whether e records what manager applied to the object itself. An Update with the same name is another manager
// for the API server, and so is an apply to a subresource.
func (e *entry) applied(manager string) bool {
	return e.manager == manager && e.operation == "Apply" && e.subresource == ""
}

// split returns the index of manager's entry, or -1. The API server keeps at most one; if a forged object has several, the
// first one counts.
func split(es []entry, manager string) int {
	for i := range es {
		if es[i].applied(manager) {
			return i
		}
	}
	return -1
}

// ours returns what manager owns by apply, false if it has no entry.
func ours(u *unstructured.Unstructured, manager string) (fields, bool) {
	for _, item := range managedFields(u.Object) {
		if e, ok := readEntry(item); ok && e.applied(manager) {
			return e.owned, true
		}
	}
	return nil, false
}

// maxManagers limits the entries that are used to explain a difference: the API server keeps ten for updates, and anyone who
// can write an object can add others.
const maxManagers = 64

// latest returns manager's entry and the latest of the others, up to maxManagers.
func latest(es []entry, manager string) []entry {
	if len(es) <= maxManagers {
		return es
	}
	sorted := slices.Clone(es)
	slices.SortStableFunc(sorted, func(a, b entry) int {
		if ours := a.applied(manager); ours != b.applied(manager) {
			if ours {
				return -1
			}
			return 1
		}
		return compareWriters(&a, &b)
	})
	return sorted[:maxManagers]
}

// holding is how an entry owns a place.
type holding int

const (
	holdsNothing holding = iota
	holdsThrough         // a place above it is owned as a whole
	holdsHere            // it, or something below it, is owned
)

// follow returns what f owns at p and how it owns it; if it owns a place above p as a whole, the node of that place. live is
// the value at f, in which list items are found; if it is nil, because the place is gone, only steps into maps can be followed.
func (f fields) follow(live any, p fieldpath.Path) (fields, holding) {
	for i, step := range p {
		if i > 0 && f.isLeaf() {
			return f, holdsThrough
		}
		next, value, ok := f.enter(live, step)
		if !ok {
			return nil, holdsNothing
		}
		f, live = next, value
	}
	return f, holdsHere
}

func (f fields) enter(live any, step fieldpath.Step) (fields, any, bool) {
	if step.Kind == fieldpath.FieldStep {
		m, _ := live.(map[string]any)
		next, ok := f.field(step.Field)
		return next, m[step.Field], ok
	}
	list, _ := live.([]any)
	i := step.Find(list)
	if i < 0 {
		return nil, nil, false
	}
	next, ok := f.items().of(list[i], i)
	return next, list[i], ok
}

// resolve converts the indexes of list items in p from the applied object to the live one: if f owns only some items, mutating
// admission may have inserted others. If p leads nowhere, it is returned unchanged.
func (f fields) resolve(live any, p fieldpath.Path) fieldpath.Path {
	if !slices.ContainsFunc(p, func(s fieldpath.Step) bool { return s.Kind == fieldpath.IndexStep }) {
		return p
	}
	out := slices.Clone(p)
	for i := range out {
		if list, ok := live.([]any); ok && out[i].Kind == fieldpath.IndexStep {
			if n := f.items().nth(list, out[i].Index); n >= 0 {
				out[i].Index = n
			}
		}
		next, ok := fieldpath.Get(live, out[i:i+1])
		if !ok {
			return p
		}
		f, _, _ = f.enter(live, out[i])
		live = next
	}
	return out
}

// cutField returns the name of an f: key.
func cutField(key string) (string, bool) { return strings.CutPrefix(key, "f:") }
