package managed

import (
	"slices"
	"strings"
)

// Owners has for each manager of an object how it owns one place. It is updated while an object is walked, so that
// looking up a place needs no further walk.
type Owners []Owner

// Owner is how one manager owns a place.
type Owner struct {
	Owned   Fields
	Holding Holding
}

// OwnersOf returns how managers own the root of an object. Nobody owns an object as a whole.
func OwnersOf(es []Entry) Owners {
	out := make(Owners, len(es))
	for i := range es {
		if !es[i].Owned.IsLeaf() {
			out[i] = Owner{Owned: es[i].Owned, Holding: HoldsHere}
		}
	}
	return out
}

// IsWhole reports whether the place, or one above it, is owned as a whole.
func (o Owner) IsWhole() bool {
	return o.Holding == HoldsThrough || o.Holding == HoldsHere && o.Owned.IsLeaf()
}

func (o Owner) below(f Fields, ok bool) Owner {
	switch {
	case o.IsWhole():
		return Owner{Owned: o.Owned, Holding: HoldsThrough}
	case ok:
		return Owner{Owned: f, Holding: HoldsHere}
	default:
		return Owner{}
	}
}

// Field returns how a field of the place is owned.
func (os Owners) Field(name string) Owners {
	out := make(Owners, len(os))
	for i, o := range os {
		out[i] = o.below(o.Owned.Field(name))
	}
	return out
}

// Items returns what each manager owns of a list's items.
func (os Owners) Items() []*Items {
	out := make([]*Items, len(os))
	for i, o := range os {
		if !o.IsWhole() {
			out[i] = o.Owned.Items()
		}
	}
	return out
}

// Item returns how item n of the list is owned; holders is the result of Items.
func (os Owners) Item(holders []*Items, item any, n int) Owners {
	out := make(Owners, len(os))
	for i, o := range os {
		if holders[i] == nil {
			out[i] = o.below(nil, false)
			continue
		}
		out[i] = o.below(holders[i].Of(item, n))
	}
	return out
}

// Of returns manager i, or an owner of nothing if there is none.
func (os Owners) Of(i int) Owner {
	if i < 0 || i >= len(os) {
		return Owner{}
	}
	return os[i]
}

// HasOther reports whether a manager other than manager our owns the place.
func (os Owners) HasOther(our int) bool {
	for i, o := range os {
		if i != our && o.Holding != HoldsNothing {
			return true
		}
	}
	return false
}

// LastWriter returns the manager that wrote the place last: the owner with the latest time apart from manager our (ties
// by name); else manager our, if it owns the place; else "".
func (os Owners) LastWriter(es []Entry, our int) string {
	var last *Entry
	for i, o := range os {
		if i == our || o.Holding == HoldsNothing {
			continue
		}
		if last == nil || compareWriters(&es[i], last) < 0 {
			last = &es[i]
		}
	}
	if last == nil && os.Of(our).Holding != HoldsNothing {
		last = &es[our]
	}
	if last == nil {
		return ""
	}
	return last.Manager
}

// Named returns how the items of a list are named: by manager our, or else by the first that names them by keys.
func Named(holders []*Items, our int) *Items {
	if our >= 0 && holders[our] != nil && holders[our].AreKeyed() {
		return holders[our]
	}
	for _, it := range holders {
		if it != nil && it.AreKeyed() {
			return it
		}
	}
	return Fields(nil).Items()
}

// ItemFinder finds the items of a list by the keys of other items.
type ItemFinder struct {
	names *Items
	list  []any
	known map[string]map[string]int // by key fields, by name
	buf   []byte
}

// Finder returns what finds the items of list by the keys that it names.
func (it *Items) Finder(list []any) *ItemFinder {
	return &ItemFinder{names: it, list: list, known: map[string]map[string]int{}}
}

// Find returns the index of the first item with the same keys as item. A key that item does not have matches any value:
// the API server defaults it.
func (w *ItemFinder) Find(item any) (int, bool) {
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

func (w *ItemFinder) by(names []string) map[string]int {
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
