package drift

import (
	"cmp"
	"slices"
	"strings"
)

// owners has for each manager of an object how it owns one place. It is updated while an object is walked, so that looking up a
// place needs no further walk.
type owners []owner

type owner struct {
	owned   fields
	holding holding
}

// ownersOf returns how managers own the root of an object. Nobody owns an object as a whole.
func ownersOf(es []entry) owners {
	out := make(owners, len(es))
	for i := range es {
		if !es[i].owned.isLeaf() {
			out[i] = owner{owned: es[i].owned, holding: holdsHere}
		}
	}
	return out
}

// isWhole reports whether the place, or one above it, is owned as a whole.
func (o owner) isWhole() bool {
	return o.holding == holdsThrough || o.holding == holdsHere && o.owned.isLeaf()
}

func (o owner) below(f fields, ok bool) owner {
	switch {
	case o.isWhole():
		return owner{owned: o.owned, holding: holdsThrough}
	case ok:
		return owner{owned: f, holding: holdsHere}
	default:
		return owner{}
	}
}

// field returns how a field of the place is owned.
func (os owners) field(name string) owners {
	out := make(owners, len(os))
	for i, o := range os {
		out[i] = o.below(o.owned.field(name))
	}
	return out
}

// items returns what each manager owns of a list's items.
func (os owners) items() []*items {
	out := make([]*items, len(os))
	for i, o := range os {
		if !o.isWhole() {
			out[i] = o.owned.items()
		}
	}
	return out
}

// item returns how item n of the list is owned; holders is the result of items.
func (os owners) item(holders []*items, item any, n int) owners {
	out := make(owners, len(os))
	for i, o := range os {
		if holders[i] == nil {
			out[i] = o.below(nil, false)
			continue
		}
		out[i] = o.below(holders[i].of(item, n))
	}
	return out
}

// of returns manager i, or an owner of nothing if there is none.
func (os owners) of(i int) owner {
	if i < 0 || i >= len(os) {
		return owner{}
	}
	return os[i]
}

// hasOther reports whether a manager other than manager our owns the place.
func (os owners) hasOther(our int) bool {
	for i, o := range os {
		if i != our && o.holding != holdsNothing {
			return true
		}
	}
	return false
}

// lastWriter returns the manager that wrote the place last; see Difference.Manager.
func (os owners) lastWriter(es []entry, our int) string {
	var last *entry
	for i, o := range os {
		if i == our || o.holding == holdsNothing {
			continue
		}
		if last == nil || compareWriters(&es[i], last) < 0 {
			last = &es[i]
		}
	}
	if last == nil && os.of(our).holding != holdsNothing {
		last = &es[our]
	}
	if last == nil {
		return ""
	}
	return last.manager
}

func compareWriters(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.manager, b.manager))
}

// named returns how the items of a list are named: by manager our, or else by the first that names them by keys.
func named(holders []*items, our int) *items {
	if our >= 0 && holders[our] != nil && holders[our].areKeyed() {
		return holders[our]
	}
	for _, it := range holders {
		if it != nil && it.areKeyed() {
			return it
		}
	}
	return fields(nil).items()
}

// itemFinder finds the items of a list by the keys of other items.
type itemFinder struct {
	names *items
	list  []any
	known map[string]map[string]int // by key fields, by name
	buf   []byte
}

func (it *items) finder(list []any) *itemFinder {
	return &itemFinder{names: it, list: list, known: map[string]map[string]int{}}
}

// find returns the index of the first item with the same keys as item. A key that item does not have matches any value: the API
// server defaults it.
func (w *itemFinder) find(item any) (int, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return 0, false
	}
	for _, names := range w.names.keys {
		has := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := m[n]; return !ok })
		if len(has) == 0 {
			continue
		}
		w.buf, _ = appendName(w.buf[:0], m, has)
		if i, ok := w.by(has)[string(w.buf)]; ok {
			return i, true
		}
	}
	return 0, false
}

func (w *itemFinder) by(names []string) map[string]int {
	id := strings.Join(names, "\x00")
	if index, ok := w.known[id]; ok {
		return index
	}
	index := make(map[string]int, len(w.list))
	w.known[id] = index
	var name []byte
	for i, item := range w.list {
		m, _ := item.(map[string]any)
		var ok bool
		if name, ok = appendName(name[:0], m, names); !ok {
			continue
		}
		if _, ok := index[string(name)]; !ok {
			index[string(name)] = i
		}
	}
	return index
}
