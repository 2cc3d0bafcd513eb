package drift

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// maxPartial limits the documents that Partial returns.
const maxPartial = 16

// Partial returns documents that change live toward desired step by step: the first has the metadata of desired and
// otherwise what our entry owns in live; each further one has one more difference as in desired. desired is not
// changed.
func Partial(desired map[string]any, live *unstructured.Unstructured, v *View) []map[string]any {
	owned, _ := Project(live, v.Manager)
	base := make(map[string]any, len(desired))
	for key, value := range owned {
		base[key] = value
	}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		base[key] = desired[key]
	}
	list := []map[string]any{base}
	for _, d := range Changed(desired, live, v) {
		if len(list) < maxPartial && d.Path[0].Field != "metadata" {
			list = append(list, copyAt(base, desired, d.Path))
		}
	}
	return list
}

// copyAt returns to with the value of from at p, or without p if from has none.
func copyAt(to, from map[string]any, p fieldpath.Path) map[string]any {
	value, ok := fieldpath.Get(from, p)
	if !ok {
		return fieldpath.Without(to, []fieldpath.Path{p})
	}
	return fieldpath.With(to, p, value)
}

// AsCreated returns desired with the live values that admission sets in a new object: where live differs from desired
// and equals created, the result of a dry-run create of desired, nobody has changed the value since. It returns nil if
// there is no such value. desired is not changed.
func AsCreated(desired map[string]any, live, created *unstructured.Unstructured, v *View) map[string]any {
	out, found := desired, false
	for _, d := range Changed(desired, live, v) {
		if d.Want == nil {
			continue
		}
		current, isPresent := fieldpath.Get(live.Object, d.Path)
		before, made := fieldpath.Get(created.Object, d.Path)
		if isPresent != made || canonical.Digest(current) != canonical.Digest(before) {
			continue
		}
		out, found = copyAt(out, live.Object, d.Path), true
	}
	if !found {
		return nil
	}
	return out
}
