package drift

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// Difference is one field whose live value is not the applied one.
type Difference struct {
	Path fieldpath.Path
	// Want and Have are the desired and the live value; nil means none. Values of Secrets are Masked on both sides.
	Want, Have any
	// Shown is the part of the path that may be shown: a key of a map can be a value of a Secret.
	Shown string
	// Manager is the field manager that wrote the live value last, according to managedFields: the owner with the latest
	// time apart from us (ties by name); else our own, if admission or another writer used our name; "" for a field
	// without an owner, such as a removed one.
	Manager string
}

// Masked replaces a value that must not be shown.
const Masked = redact.Masked

// Changed returns how the live object differs from desired, sorted by path: fields with another value or none, fields
// that we own but do not desire any more, and additional keys in exclusive fields; no identity, and no fields that are
// not part of P. A value that the API server normalizes (1000m to 1) counts as different: to avoid that, pass as
// desired what Project returns for the result of an apply.
func Changed(desired map[string]any, live *unstructured.Unstructured, v *View) []Difference {
	es := managed.Latest(managed.Entries(live), v.Manager)
	d := differ{es: es, our: managed.Find(es, v.Manager), words: v.Words}
	d.secret = live.GetAPIVersion() == "v1" && live.GetKind() == "Secret"
	root := managed.OwnersOf(es)
	leftOut := v.leftOut()
	resolved := make([]fieldpath.Path, len(leftOut))
	for i, p := range leftOut {
		resolved[i] = root.Of(d.our).Owned.Resolve(live.Object, p)
	}
	d.maps(shape(desired, leftOut), shape(live.Object, resolved), root, nil)
	d.extras(live, desired, v.Exclusive)
	d.found = slices.DeleteFunc(d.found, func(f Difference) bool { return slices.ContainsFunc(v.Aside, f.Path.Equal) })
	slices.SortFunc(d.found, func(a, b Difference) int { return fieldpath.Compare(a.Path, b.Path) })
	return slices.CompactFunc(d.found, func(a, b Difference) bool { return a.Path.Equal(b.Path) })
}

type differ struct {
	es     []managed.Entry
	our    int
	secret bool
	words  redact.Words
	found  []Difference
}

func (d *differ) add(at *fieldpath.Trail, want, have any, holders managed.Owners) {
	d.addPath(at.Path(), want, have, holders)
}

func (d *differ) addPath(p fieldpath.Path, want, have any, holders managed.Owners) {
	if d.words != nil || d.secret && p[0].Kind == fieldpath.FieldStep &&
		(p[0].Field == "data" || p[0].Field == "stringData") {
		want, have = Mask(want), Mask(have)
	}
	d.found = append(d.found, Difference{Path: p, Want: want, Have: have, Shown: d.words.Path(p.String()),
		Manager: holders.LastWriter(d.es, d.our)})
}

func (d *differ) extras(live *unstructured.Unstructured, desired map[string]any, exclusive []fieldpath.Path) {
	for _, p := range Extras(live, desired, exclusive) {
		value, _ := fieldpath.Get(live.Object, p)
		holders := make(managed.Owners, len(d.es))
		for i := range d.es {
			holders[i].Owned, holders[i].Holding = d.es[i].Owned.Follow(live.Object, p)
		}
		d.addPath(p, nil, value, holders)
	}
}

// Mask masks a value of a Secret or, key by key, the values of a map; nil, which means none, stays.
func Mask(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = Masked
		}
		return out
	default:
		return Masked
	}
}

func (d *differ) values(want, have any, holders managed.Owners, at *fieldpath.Trail) {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok && (len(want) > 0 || !holders.Of(d.our).IsWhole()) {
			d.maps(want, have, holders, at)
			d.atomicRest(want, have, holders, at)
			return
		}
	case []any:
		if have, ok := have.([]any); ok {
			d.lists(want, have, holders, at)
			return
		}
	}
	if canonical.Digest(want) != canonical.Digest(have) {
		d.add(at, want, have, holders)
	}
}

func (d *differ) maps(want, have map[string]any, holders managed.Owners, at *fieldpath.Trail) {
	for k, value := range want {
		d.values(value, have[k], holders.Field(k), at.Field(k))
	}
	for key := range holders.Of(d.our).Owned {
		name, ok := managed.CutField(key)
		value, live := have[name]
		if _, wanted := want[name]; ok && live && !wanted {
			d.removed(value, holders.Field(name), at.Field(name))
		}
	}
}

// removed adds the parts of a value that we own and do not desire any more.
func (d *differ) removed(have any, holders managed.Owners, at *fieldpath.Trail) {
	ours := holders.Of(d.our)
	m, ok := have.(map[string]any)
	switch {
	case ours.Holding == managed.HoldsNothing:
	case !ok || ours.IsWhole():
		d.add(at, nil, have, holders)
	default:
		d.maps(nil, m, holders, at)
	}
}

// atomicRest adds the additional keys of a map that managers own only as a whole: an apply replaces all of it, and
// would remove these keys.
func (d *differ) atomicRest(want, have map[string]any, holders managed.Owners, at *fieldpath.Trail) {
	whole := false
	for _, o := range holders {
		if o.Holding == managed.HoldsHere && !o.Owned.IsLeaf() {
			return
		}
		whole = whole || o.IsWhole()
	}
	if !whole {
		return
	}
	for k, value := range have {
		if _, ok := want[k]; !ok {
			d.add(at.Field(k), nil, value, holders)
		}
	}
}

// lists compares item by item if a manager owns the items by their keys or values, else as a whole.
func (d *differ) lists(want, have []any, holders managed.Owners, at *fieldpath.Trail) {
	within := holders.Items()
	find, names := matcher(within, d.our, have)
	if find == nil {
		if canonical.Digest(want) != canonical.Digest(have) {
			d.add(at, want, have, holders)
		}
		return
	}
	before, last, turned := len(d.found), -1, false
	matched := make([]bool, len(have))
	for i, item := range want {
		step := names.Step(item, i, at)
		j, ok := find(item)
		if !ok {
			d.add(step, item, nil, nil)
			continue
		}
		matched[j], turned, last = true, turned || j < last, j
		d.values(item, have[j], holders.Item(within, have[j], j), step)
	}
	for j, item := range have {
		if below := holders.Item(within, item, j); !matched[j] && below.Of(d.our).Holding == managed.HoldsHere {
			d.add(names.Step(item, j, at), nil, item, below)
		}
	}
	if turned && len(d.found) == before {
		d.add(at, want, have, holders) // the items are the same, their order differs
	}
}

// matcher returns a function that finds an item in list, and the names of the items; nil if they are named neither by
// keys nor by values.
func matcher(within []*managed.Items, our int, list []any) (find func(item any) (int, bool), names *managed.Items) {
	names = managed.Named(within, our)
	switch {
	case names.AreKeyed():
		return names.Finder(list).Find, names
	case slices.ContainsFunc(within, func(it *managed.Items) bool { return it != nil && it.AreValues() }):
		numbers := make(map[canonical.Sum]int, len(list))
		for i, item := range slices.Backward(list) {
			numbers[canonical.Digest(item)] = i
		}
		return func(item any) (int, bool) { i, ok := numbers[canonical.Digest(item)]; return i, ok }, names
	default:
		return nil, names
	}
}

// Paths are the paths of differences, in one text.
func Paths(list []Difference) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Path.String() + "\n")
	}
	return b.String()
}

// maxExplained is how many fields Explain names.
const maxExplained = 3

// Explain says on one line which fields differ and who wrote them last. manager is our field manager: what it wrote
// itself, and the document does not have any more, was changed by nobody else.
func Explain(list []Difference, manager string) string {
	var parts []string
	for k, c := range list {
		if k == maxExplained {
			parts = append(parts, "and more")
			break
		}
		text := c.Shown
		switch {
		case c.Manager == manager && c.Want == nil && manager != "":
			text += " (no longer desired)"
		case c.Manager == manager && manager != "":
			text += " (written under our own field manager " + manager + ": by admission, or by another process)"
		case c.Manager != "":
			text += " (last written by " + c.Manager + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// IsOwnChange reports whether nobody else has caused the differences of an object whose hash is the desired one: no
// other manager wrote these fields, and we applied one that is not desired any more, such as the hash under another
// key, or an owner reference that has become another one, as with another version of the upstream. It is true if
// nothing differs, as with another field manager.
func IsOwnChange(list []Difference, manager string) bool {
	ofOwner := fieldpath.New("metadata", "ownerReferences")
	return !slices.ContainsFunc(list, func(d Difference) bool { return d.Manager != "" && d.Manager != manager }) &&
		(len(list) == 0 || slices.ContainsFunc(list, func(d Difference) bool {
			return d.Manager == manager && (d.Want == nil || d.Path.Overlaps(ofOwner))
		}))
}
