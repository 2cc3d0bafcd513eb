package drift

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// InitialField is the state of one initial field of a live object. As long as only we own it, it must be applied with
// its live value, because omitting it would reset it; once another manager owns it, it must be omitted.
type InitialField struct {
	// Ours means that our entry owns the field or something in it. Others means that another manager does, by any
	// operation or subresource (an autoscaler uses the scale subresource).
	Ours, Others bool
	// Value is the live value; nil if Present is false, and for a generated field.
	Value   any
	Present bool
}

func (v *View) initial(obj map[string]any, es []managed.Entry, our int) []InitialField {
	if len(v.Initial) == 0 {
		return nil
	}
	out := make([]InitialField, len(v.Initial))
	for i, p := range v.Initial {
		out[i] = initialField(obj, p, es, our)
		if f := &out[i]; v.isGenerated(i) {
			f.Present, f.Value = f.Value != nil, nil // a key without a value is stored as null
		}
	}
	return out
}

func (v *View) isGenerated(i int) bool { return i >= len(v.Initial)-v.Generated }

// LacksGenerated reports whether a generated field of a live object is missing.
func (v *View) LacksGenerated(l *Live) bool {
	for i, f := range l.Initial {
		if v.isGenerated(i) && !f.Present {
			return true
		}
	}
	return false
}

// initialField returns the state of one field. Another manager that owns a place above the field counts only if we do
// not own the field itself: if we do, that place is not atomic, and the manager owns only the place.
func initialField(obj map[string]any, p fieldpath.Path, es []managed.Entry, our int) InitialField {
	var f InitialField
	var owned managed.Fields
	mine := managed.HoldsNothing
	if our >= 0 {
		owned = es[our].Owned
		p = owned.Resolve(obj, p)
		_, mine = owned.Follow(obj, p)
	}
	f.Ours = mine != managed.HoldsNothing
	for i := range es {
		if i == our {
			continue
		}
		_, theirs := es[i].Owned.Follow(obj, p)
		f.Others = f.Others || theirs == managed.HoldsHere || theirs == managed.HoldsThrough && mine != managed.HoldsHere
	}
	value, ok := fieldpath.Get(obj, p)
	if f.Present = ok; ok {
		f.Value = runtime.DeepCopyJSONValue(value)
	}
	return f
}
