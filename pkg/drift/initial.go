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
	// Value is the live value; nil if Present is false, and for a generated field.
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
		if f := &out[i]; v.isGenerated(i) {
			f.Present, f.Value = f.Value != nil, nil // null is what a key without a value is stored as
		}
	}
	return out
}

func (v *View) isGenerated(i int) bool { return i >= len(v.Initial)-v.Generated }

// LacksGenerated reports whether a generated field of a live object is not there.
func (v *View) LacksGenerated(l *Live) bool {
	for i, f := range l.Initial {
		if v.isGenerated(i) && !f.Present {
			return true
		}
	}
	return false
}

// initialField reads one field. Another manager that owns a place above the field counts only where we do not own the
// field by itself: if we do, then that place is no atomic one, and the other owns but the place.
func initialField(obj map[string]any, p fieldpath.Path, es []entry, our int) InitialField {
	var f InitialField
	var owned fields
	mine := holdsNothing
	if our >= 0 {
		owned = es[our].owned
		p = owned.resolve(obj, p)
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
	value, ok := fieldpath.Get(obj, p)
	if f.Present = ok; ok {
		f.Value = runtime.DeepCopyJSONValue(value)
	}
	return f
}
