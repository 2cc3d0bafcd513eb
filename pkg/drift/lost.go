package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// CoOwnedField is a field that we no longer apply and that lives on, since another manager owns it too.
type CoOwnedField struct {
	Path fieldpath.Path
	// Manager is the other owner; where there are several, the last writer.
	Manager string
}

// LostFields returns the fields that manager owned in before, owns no longer in after, and that still live there because
// another manager owns them. before is the object as it was when the apply was made, after is what the apply returned.
// Below a field that is listed nothing more is. Sorted by path.
func LostFields(before, after *unstructured.Unstructured, manager string) []CoOwnedField {
	old, ok := ours(before, manager)
	if !ok {
		return nil
	}
	es := entries(after)
	l := lostFinder{es: es, our: split(es, manager)}
	l.fields(old, before.Object, after.Object, ownersOf(es), nil)
	slices.SortFunc(l.lost, func(a, b CoOwnedField) int { return comparePaths(a.Path, b.Path) })
	return l.lost
}

type lostFinder struct {
	es   []entry
	our  int
	lost []CoOwnedField
}

// place looks at one place that lives on: old is what we owned of it, held how it is held now. A place that was owned
// itself is lost where nothing of it is ours any more and something of it is another's; of others what is below may be.
func (l *lostFinder) place(old fields, before, after any, held owners, at *trail) {
	if held.of(l.our).holding == holdsNothing && old.member() {
		if held.others(l.our) {
			l.lost = append(l.lost, CoOwnedField{Path: at.path(), Manager: held.lastWriter(l.es, l.our)})
		}
		return
	}
	if old.leaf() || held.of(l.our).whole() {
		return
	}
	switch before := before.(type) {
	case map[string]any:
		l.fields(old, before, after, held, at)
	case []any:
		l.items(old, before, after, held, at)
	}
}

func (l *lostFinder) fields(old fields, before map[string]any, after any, held owners, at *trail) {
	lives, _ := after.(map[string]any)
	for key := range old {
		name, ok := cutField(key)
		value, still := lives[name]
		was, owned := old.below(key)
		if ok && still && owned {
			l.place(was, before[name], value, held.field(name), &trail{parent: at, field: name})
		}
	}
}

func (l *lostFinder) items(old fields, before []any, after any, held owners, at *trail) {
	list, _ := after.([]any)
	names, within := old.items(), held.items()
	twins := names.finder(before)
	for i, item := range list {
		was, owned := names.of(item, i)
		if !owned {
			continue
		}
		var twin any
		if j, ok := twins.find(item); ok {
			twin = before[j]
		}
		l.place(was, twin, item, held.item(within, item, i), names.step(item, i, at))
	}
}
