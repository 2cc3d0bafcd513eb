package drift

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// InitialField is what is known of one initial field of a live object. While we own it alone it must be applied with
// its live value, for leaving it out would reset it; once another manager owns it, it must be left out.
type InitialField struct {
	// Ours: our entry owns the field or something in it. Others: another manager does, by whatever operation or
	// subresource (an autoscaler scales through one).
	Ours, Others bool
	// Value is the live value; nil where Present is false.
	Value   any
	Present bool
}

func (v *View) initial(obj map[string]any, es []entry, our int) []InitialField {
	if len(v.Initial) == 0 {
		return nil
	}
	out := make([]InitialField, len(v.Initial))
	for i, p := range v.Initial {
		out[i] = initialField(obj, p, es, our)
	}
	return out
}

// initialField reads one field. Another manager that owns a place above the field counts only where we do not own the
// field by itself: if we do, then that place is no atomic one, and the other owns but the place.
func initialField(obj map[string]any, p fieldpath.Path, es []entry, our int) InitialField {
	var f InitialField
	var owned fields
	mine := holdsNothing
	if our >= 0 {
		owned = es[our].owned
		_, mine = owned.follow(obj, p)
	}
	f.Ours = mine != holdsNothing
	for i := range es {
		if i == our {
			continue
		}
		_, theirs := es[i].owned.follow(obj, p)
		f.Others = f.Others || theirs == holdsHere || theirs == holdsThrough && mine != holdsHere
	}
	value, ok := owned.get(obj, p)
	if f.Present = ok; ok {
		f.Value = runtime.DeepCopyJSONValue(value)
	}
	return f
}

// get returns what stands at p in live, where an index counts the items that f owns.
func (f fields) get(live any, p fieldpath.Path) (any, bool) {
	for i, step := range p {
		list, isList := live.([]any)
		if !isList {
			value, ok := fieldpath.Get(live, p[i:i+1])
			if !ok {
				return nil, false
			}
			f, _ = f.field(step.Field)
			live = value
			continue
		}
		items := f.items()
		n := findItem(list, step, items)
		if n < 0 {
			return nil, false
		}
		live = list[n]
		f, _ = items.of(live, n)
	}
	return live, true
}
