package managed

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Fields is one place in a manager's fieldsV1, as decoded JSON. Its keys are what the manager owns below that place; a
// place without keys, or with only ".", is owned as a whole: a scalar, an atomic map or list, or an empty one (which
// look the same).
type Fields map[string]any

// ownDot marks a place that is owned itself, in addition to what is owned below it.
const ownDot = "."

// IsLeaf reports whether nothing is owned below f, so that f is owned as a whole.
func (f Fields) IsLeaf() bool {
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

// IsMember reports whether the place itself is owned.
func (f Fields) IsMember() bool {
	if len(f) == 0 {
		return true
	}
	_, dot := f[ownDot]
	return dot
}

// Below returns what is owned below one key of fieldsV1. Anything but a map is invalid there and owns nothing.
func (f Fields) Below(key string) (Fields, bool) {
	m, ok := f[key].(map[string]any)
	return m, ok && m != nil
}

// Field returns what is owned of the field name.
func (f Fields) Field(name string) (Fields, bool) { return f.Below("f:" + name) }

// Holding is how an entry owns a place.
type Holding int

// How an entry owns a place.
const (
	HoldsNothing Holding = iota
	HoldsThrough         // a place above it is owned as a whole
	HoldsHere            // it, or something below it, is owned
)

// Follow returns what f owns at p and how it owns it; if it owns a place above p as a whole, the node of that place.
// live is the value at f, in which list items are found; if it is nil, because the place is gone, only steps into maps
// can be followed.
func (f Fields) Follow(live any, p fieldpath.Path) (Fields, Holding) {
	for i, step := range p {
		if i > 0 && f.IsLeaf() {
			return f, HoldsThrough
		}
		next, value, ok := f.enter(live, step)
		if !ok {
			return nil, HoldsNothing
		}
		f, live = next, value
	}
	return f, HoldsHere
}

func (f Fields) enter(live any, step fieldpath.Step) (Fields, any, bool) {
	if step.Kind == fieldpath.FieldStep {
		m, _ := live.(map[string]any)
		next, ok := f.Field(step.Field)
		return next, m[step.Field], ok
	}
	list, _ := live.([]any)
	i := step.Find(list)
	if i < 0 {
		return nil, nil, false
	}
	next, ok := f.Items().Of(list[i], i)
	return next, list[i], ok
}

// Resolve converts the indexes of list items in p from the applied object to the live one: if f owns only some items,
// mutating admission may have inserted others. If p leads nowhere, it is returned unchanged.
func (f Fields) Resolve(live any, p fieldpath.Path) fieldpath.Path {
	if !slices.ContainsFunc(p, func(s fieldpath.Step) bool { return s.Kind == fieldpath.IndexStep }) {
		return p
	}
	out := slices.Clone(p)
	for i := range out {
		if list, ok := live.([]any); ok && out[i].Kind == fieldpath.IndexStep {
			if n := f.Items().nth(list, out[i].Index); n >= 0 {
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

// Overlaps reports whether theirs has a place that f has, too.
func (f Fields) Overlaps(theirs Fields) bool {
	for key, below := range theirs {
		their, ok := below.(map[string]any)
		if !ok || key == ownDot {
			continue
		}
		own, ok := f.Below(key)
		if ok && (own.Overlaps(their) || own.IsMember() && Fields(their).IsMember()) {
			return true
		}
	}
	return false
}

// CutField returns the name of an f: key.
func CutField(key string) (string, bool) { return strings.CutPrefix(key, "f:") }
