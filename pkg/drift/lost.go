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

// Lost returns the fields that manager owned in before, owns no longer in after, and that still live there because
// another manager owns them. before is the object as it was when the apply was made, after is what the apply returned.
// Below a field that is listed nothing more is. Sorted by path.
func Lost(before, after *unstructured.Unstructured, manager string) []CoOwnedField {
	old, ok := ours(before, manager)
	if !ok {
		return nil
	}
	now, _ := ours(after, manager)
	es := entries(after)
	l := loser{after: after.Object, es: es, our: split(es, manager)}
	l.walk(old, now, before.Object, after.Object, nil)
	slices.SortFunc(l.lost, func(a, b CoOwnedField) int { return comparePaths(a.Path, b.Path) })
	return l.lost
}

type loser struct {
	after map[string]any
	es    []entry
	our   int
	lost  []CoOwnedField
}

// walk goes over what was owned. before and after are the live values at the same place.
func (l *loser) walk(old, now fields, before, after any, at *trail) {
	beforeList, _ := before.([]any)
	if beforeList != nil {
		l.list(old, now, beforeList, after, at)
		return
	}
	beforeMap, _ := before.(map[string]any)
	afterMap, _ := after.(map[string]any)
	for key := range old {
		name, ok := cutField(key)
		value, lives := afterMap[name]
		if !ok || !lives {
			continue
		}
		was, _ := old.field(name)
		is, still := now.field(name)
		l.place(was, is, still, beforeMap[name], value, &trail{parent: at, field: name})
	}
}

func (l *loser) list(old, now fields, before []any, after any, at *trail) {
	list, _ := after.([]any)
	oldItems, nowItems := old.items(), now.items()
	twins := oldItems.index(before)
	for i, item := range list {
		was, owned := oldItems.of(item, i)
		if !owned {
			continue
		}
		is, still := nowItems.of(item, i)
		step := oldItems.step(item, i)
		step.parent = at
		var twin any
		if j, ok := twins[oldItems.name(item)]; ok {
			twin = before[j]
		}
		l.place(was, is, still, twin, item, step)
	}
}

// place looks at one place that lives on. A place that was owned itself is lost where nothing of it is ours any more and
// something of it is another's; of others what is below may be.
func (l *loser) place(was, is fields, still bool, before, after any, at *trail) {
	if still || !was.member() {
		if !was.leaf() {
			l.walk(was, is, before, after, at)
		}
		return
	}
	p := at.path()
	if l.our >= 0 {
		if _, holding := l.es[l.our].owned.follow(l.after, p); holding == holdsThrough {
			return // ours as part of something larger now
		}
	}
	if l.ownedByOthers(p) {
		l.lost = append(l.lost, CoOwnedField{Path: p, Manager: lastWriter(l.after, l.es, l.our, p)})
	}
}

func (l *loser) ownedByOthers(p fieldpath.Path) bool {
	for i := range l.es {
		if i == l.our {
			continue
		}
		if _, holding := l.es[i].owned.follow(l.after, p); holding != holdsNothing {
			return true
		}
	}
	return false
}
