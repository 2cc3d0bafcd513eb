package apply

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NewMarks are marks that take the place of others.
type NewMarks struct {
	Labels, Annotations map[string]string
	OwnerReferences     []any // as JSON has them
	Off                 Marks // what goes; its managers' fields become ours
}

// Remark puts new marks on live, which was read whole, in the place of old ones, by one JSON patch, and returns it as
// stored; everything else stays as it is. It is for objects that must not be applied again. ErrConflict: live changed
// since; read it again.
//
// What it writes belongs to an Update entry of the client's manager, which a Release takes off like any other.
func (c *Client) Remark(ctx context.Context, t Target, live *unstructured.Unstructured, marks NewMarks) (*unstructured.Unstructured, error) {
	p := patchOf(live)
	if entries, ok := takenOver(live, c.manager, marks.Off.Managers); ok {
		p.add(entries, "metadata", "managedFields")
	}
	p.removeOwners(live, marks.Off.OwnerUID)
	p.addOwners(live, marks.OwnerReferences)
	p.removeKeys("labels", live.GetLabels(), without(marks.Off.Labels, marks.Labels))
	p.addKeys("labels", live.GetLabels(), marks.Labels)
	p.removeKeys("annotations", live.GetAnnotations(), without(marks.Off.Annotations, marks.Annotations))
	p.addKeys("annotations", live.GetAnnotations(), marks.Annotations)
	if p.empty() {
		return live, nil
	}
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "marking", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

func without(keys []string, set map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { _, ok := set[key]; return ok })
}

// addOwners adds the references to owners that live has none of.
func (p *jsonPatch) addOwners(live *unstructured.Unstructured, refs []any) {
	have, _, _ := unstructured.NestedSlice(live.Object, "metadata", "ownerReferences")
	list := false
	for _, ref := range refs {
		m, _ := ref.(map[string]any)
		same := func(item any) bool { h, _ := item.(map[string]any); return h["uid"] == m["uid"] }
		switch {
		case slices.ContainsFunc(have, same):
		case len(have) == 0 && !list:
			p.add([]any{ref}, "metadata", "ownerReferences")
			list = true
		default:
			p.add(ref, "metadata", "ownerReferences", "-")
		}
	}
}

// addKeys sets labels or annotations to what they are not yet.
func (p *jsonPatch) addKeys(field string, have, want map[string]string) {
	want = maps.Clone(want)
	maps.DeleteFunc(want, func(key, value string) bool { return have[key] == value && value != "" })
	if have == nil && len(want) > 0 {
		all := make(map[string]any, len(want))
		for key, value := range want {
			all[key] = value
		}
		p.add(all, "metadata", field)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		p.add(want[key], "metadata", field, key)
	}
}
