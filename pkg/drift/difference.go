package drift

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Difference is one field that is not as it was applied.
type Difference struct {
	Path fieldpath.Path
	// Want and Have are the desired and the live value; nil is none. A Secret's values read Masked on both sides.
	Want, Have any
	// Manager is the field manager that wrote the live value last, as far as managedFields tells: of those that own the
	// field beside us the one with the latest time (ties by name), else our own, which then had help from admission or
	// from a second writer under its name; "" for a field that nobody owns, such as one that was removed.
	Manager string
}

// Masked stands for a value that must not be shown.
const Masked = "(masked)"

// Changed returns how the live object differs from desired: fields of desired with another value or none, fields that we
// own and desired no longer has, and keys that exclusive fields have too many. Sorted by path. Initial fields and the
// object's identity are left out.
//
// A value that the API server spells in its own way (1000m as 1) counts as different. To leave such out, pass as desired
// what Project returns for the answer to an apply of it.
func Changed(desired map[string]any, live *unstructured.Unstructured, v *View) []Difference {
	es := entries(live)
	d := differ{live: live.Object, es: es, our: split(es, v.Manager), secret: isSecret(live.Object)}
	var owned fields
	if d.our >= 0 {
		owned = es[d.our].owned
	}
	initial := make([]fieldpath.Path, len(v.Initial))
	for i, p := range v.Initial {
		initial[i] = owned.resolve(live.Object, p)
	}
	d.maps(shape(desired, v.Initial), shape(live.Object, initial), owned, nil)
	for _, p := range Extras(live, desired, v.Exclusive) {
		value, _ := fieldpath.Get(live.Object, p)
		d.found = append(d.found, d.difference(p, nil, value))
	}
	slices.SortFunc(d.found, func(a, b Difference) int { return comparePaths(a.Path, b.Path) })
	return slices.CompactFunc(d.found, func(a, b Difference) bool { return a.Path.Equal(b.Path) })
}

type differ struct {
	live   map[string]any
	es     []entry
	our    int
	secret bool
	found  []Difference
}

func (d *differ) add(at *trail, want, have any) {
	d.found = append(d.found, d.difference(at.path(), want, have))
}

func (d *differ) difference(p fieldpath.Path, want, have any) Difference {
	out := Difference{Path: p, Want: want, Have: have, Manager: lastWriter(d.live, d.es, d.our, p)}
	if d.secret && p[0].Kind == fieldpath.FieldStep && (p[0].Field == "data" || p[0].Field == "stringData") {
		out.Want, out.Have = masked(want), masked(have)
	}
	return out
}

func masked(v any) any {
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

func (d *differ) values(want, have any, owned fields, at *trail) {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok && (len(want) > 0 || !owned.leaf()) {
			d.maps(want, have, owned, at)
			d.atomicRest(want, have, owned, at)
			return
		}
	case []any:
		if have, ok := have.([]any); ok {
			d.lists(want, have, owned, at)
			return
		}
	}
	if Digest(want) != Digest(have) {
		d.add(at, want, have)
	}
}

func (d *differ) maps(want, have map[string]any, owned fields, at *trail) {
	for k, value := range want {
		below, _ := owned.field(k)
		d.values(value, have[k], below, &trail{parent: at, field: k})
	}
	for key := range owned {
		name, _ := cutField(key)
		below, ok := owned.below(key)
		value, live := have[name]
		if _, wanted := want[name]; ok && live && !wanted {
			d.gone(value, below, &trail{parent: at, field: name})
		}
	}
}

// gone reports what we own of a value that is no longer desired.
func (d *differ) gone(have any, owned fields, at *trail) {
	m, ok := have.(map[string]any)
	if !ok || owned.leaf() {
		d.add(at, nil, have)
		return
	}
	d.maps(nil, m, owned, at)
}

// atomicRest reports the keys that a map has too many where managers own it only as a whole: then an apply replaces all
// of it, and whatever desired has not would go.
func (d *differ) atomicRest(want, have map[string]any, owned fields, at *trail) {
	if !owned.leaf() || len(have) == 0 {
		return
	}
	p, whole := at.path(), false
	for _, e := range d.es {
		node, holding := e.owned.follow(d.live, p)
		if holding == holdsHere && !node.leaf() {
			return
		}
		whole = whole || holding != holdsNothing
	}
	for k, value := range have {
		if _, ok := want[k]; !ok && whole {
			d.add(&trail{parent: at, field: k}, nil, value)
		}
	}
}

// lists compares item by item where some manager owns the items by their keys, else as a whole.
func (d *differ) lists(want, have []any, owned fields, at *trail) {
	own := owned.items()
	names := own
	if !names.keyed() {
		names = namesAt(d.es, d.live, at.path())
	}
	if !names.keyed() {
		if Digest(want) != Digest(have) {
			d.add(at, want, have)
		}
		return
	}
	twins := names.index(have)
	matched := make([]bool, len(have))
	for i, item := range want {
		step := names.step(item, i)
		step.parent = at
		j, ok := twins[names.name(item)]
		if !ok {
			j, ok = names.match(item, have)
		}
		if !ok {
			d.add(step, item, nil)
			continue
		}
		matched[j] = true
		below, _ := own.of(have[j], j)
		d.values(item, have[j], below, step)
	}
	for j, item := range have {
		if _, ok := own.of(item, j); ok && !matched[j] {
			step := names.step(item, j)
			step.parent = at
			d.add(step, nil, item)
		}
	}
}

// lastWriter returns the manager that wrote what stands at p last; see Difference.Manager.
func lastWriter(obj map[string]any, es []entry, our int, p fieldpath.Path) string {
	var writers []entry
	mine := ""
	for i, e := range es {
		if _, holding := e.owned.follow(obj, p); holding == holdsNothing {
			continue
		}
		if i == our {
			mine = e.manager
			continue
		}
		writers = append(writers, e)
	}
	if len(writers) == 0 {
		return mine
	}
	return slices.MinFunc(writers, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.manager, b.manager))
	}).manager
}

func sortPaths(paths []fieldpath.Path) { slices.SortFunc(paths, comparePaths) }

func comparePaths(a, b fieldpath.Path) int {
	for i := range min(len(a), len(b)) {
		if c := compareSteps(a[i], b[i]); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

func compareSteps(a, b fieldpath.Step) int {
	if c := cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Index, b.Index)); c != 0 {
		return c
	}
	if maps.Equal(a.Selector, b.Selector) {
		return 0
	}
	return cmp.Compare(a.String(), b.String())
}
