package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// CoOwnedField is a field that we do not apply any more and that remains, because another manager owns it too.
type CoOwnedField struct {
	Path fieldpath.Path
	// Manager is the other owner; if there are several, the last writer.
	Manager string
}

// LostFields returns the fields that manager owned in before, does not own in after, and that remain because another
// manager owns them, sorted by path and without fields below a returned one. before is the object at the time of the
// apply, after is the result of the apply.
func LostFields(before, after *unstructured.Unstructured, manager string) []CoOwnedField {
	old, ok := managed.Owned(before, manager)
	if !ok {
		return nil
	}
	es := managed.Entries(after)
	l := lostFinder{es: es, our: managed.Find(es, manager)}
	l.fields(old, before.Object, after.Object, managed.OwnersOf(es), nil)
	slices.SortFunc(l.lost, func(a, b CoOwnedField) int { return fieldpath.Compare(a.Path, b.Path) })
	return l.lost
}

type lostFinder struct {
	es   []managed.Entry
	our  int
	lost []CoOwnedField
}

// place checks one remaining place: old is what we owned of it, holders how it is owned now. A place that was owned
// itself is lost if we own nothing of it any more and someone else owns something; otherwise check what is below.
func (l *lostFinder) place(old managed.Fields, before, after any, holders managed.Owners, at *fieldpath.Trail) {
	if holders.Of(l.our).Holding == managed.HoldsNothing && old.IsMember() {
		if holders.HasOther(l.our) {
			l.lost = append(l.lost, CoOwnedField{Path: at.Path(), Manager: holders.LastWriter(l.es, l.our)})
		}
		return
	}
	if old.IsLeaf() || holders.Of(l.our).IsWhole() {
		return
	}
	switch before := before.(type) {
	case map[string]any:
		l.fields(old, before, after, holders, at)
	case []any:
		l.items(old, before, after, holders, at)
	}
}

func (l *lostFinder) fields(
	old managed.Fields, before map[string]any, after any, holders managed.Owners, at *fieldpath.Trail,
) {
	lives, _ := after.(map[string]any)
	for key := range old {
		name, ok := managed.CutField(key)
		value, still := lives[name]
		owns, owned := old.Below(key)
		if ok && still && owned {
			l.place(owns, before[name], value, holders.Field(name), at.Field(name))
		}
	}
}

func (l *lostFinder) items(old managed.Fields, before []any, after any, holders managed.Owners, at *fieldpath.Trail) {
	list, _ := after.([]any)
	names, within := old.Items(), holders.Items()
	twins := names.Finder(before)
	for i, item := range list {
		owns, owned := names.Of(item, i)
		if !owned {
			continue
		}
		var twin any
		if j, ok := twins.Find(item); ok {
			twin = before[j]
		}
		l.place(owns, twin, item, holders.Item(within, item, i), names.Step(item, i, at))
	}
}
