package apply

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Marks is what marks an object as ours.
type Marks struct {
	OwnerUID    types.UID // owner references to this uid
	Labels      []string  // keys: those of the conventions, and the hash if it is a label
	Annotations []string  // keys: those of the conventions, the owner annotation, the hash
	Managers    []string  // field managers other than the client's whose fields are ours too
}

// Release removes marks from live, which was read as a whole, and gives up its fields; everything else stays, including
// the owner references, labels and annotations of others. It returns the object as stored, which is live, without a
// request, if there is nothing to remove; nil if it is gone. ErrConflict: live changed since. The entries of the
// manager in managedFields go too, and values do not change: with our entry, the next writer would have a conflict with
// us, and could never remove a field.
func (c *Client) Release(
	ctx context.Context, t Target, live *unstructured.Unstructured, marks Marks,
) (*unstructured.Unstructured, error) {
	p := patchOf(live)
	p.removeOwners(live, marks.OwnerUID)
	p.removeKeys("labels", live.GetLabels(), marks.Labels)
	p.removeKeys("annotations", live.GetAnnotations(), marks.Annotations)
	p.removeManagers(live, append([]string{c.manager}, marks.Managers...))
	if p.empty() {
		return live, nil
	}
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "releasing", needs: "patch"}, t)
	switch {
	case failed == nil:
		return out, nil
	case errors.Is(failed, ErrGone):
		return nil, nil
	}
	return nil, failed
}

// removeOwners removes the owner references to uid, starting from the last so that indexes stay right.
func (p *jsonPatch) removeOwners(live *unstructured.Unstructured, uid types.UID) {
	for i, o := range slices.Backward(live.GetOwnerReferences()) {
		if o.UID == uid && uid != "" {
			p.remove("metadata", "ownerReferences", index(i))
		}
	}
}

func (p *jsonPatch) removeKeys(field string, have map[string]string, keys []string) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	for _, k := range keys {
		if _, ok := have[k]; ok {
			p.remove("metadata", field, k)
		}
	}
}

// removeManagers removes the entries of managers. If the list would become empty, it becomes a list of one empty entry,
// which means none: the API server ignores an empty list in custom resources, because it might come from an old client.
func (p *jsonPatch) removeManagers(live *unstructured.Unstructured, managers []string) {
	entries := live.GetManagedFields()
	ours := 0
	var q jsonPatch
	for i, e := range slices.Backward(entries) {
		if slices.Contains(managers, e.Manager) {
			ours++
			q.remove("metadata", "managedFields", index(i))
		}
	}
	if ours > 0 && ours == len(entries) {
		q = nil
		q.add([]any{map[string]any{}}, "metadata", "managedFields")
	}
	*p = append(*p, q...)
}
