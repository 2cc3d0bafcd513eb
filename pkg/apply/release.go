package apply

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Marks is what says on an object that it is ours.
type Marks struct {
	OwnerUID    types.UID // owner references to this uid
	Labels      []string  // keys: those that the conventions name, the hash where it is a label
	Annotations []string  // keys: those that the conventions name, the owner annotation, the hash
	Managers    []string  // field managers besides the client's own whose fields are ours too
}

// Release takes marks off live, which was read whole, and lets go of its fields; everything else stays as it is,
// other writers' owner references, labels and annotations included. It returns nil also where nothing was left
// to take off (then without a request) or the object is gone. ErrConflict: live changed since; read it again.
//
// The manager's entries in managedFields go too. An entry that stays would speak for somebody who no longer
// cares: whoever applies the object next would run into a conflict with us, and could never remove a field that
// we still seem to own. The values do not change by it.
func (c *Client) Release(ctx context.Context, t Target, live *unstructured.Unstructured, marks Marks) error {
	p := patchOf(live)
	p.removeOwners(live, marks.OwnerUID)
	p.removeKeys("labels", live.GetLabels(), marks.Labels)
	p.removeKeys("annotations", live.GetAnnotations(), marks.Annotations)
	p.removeManagers(live, append([]string{c.manager}, marks.Managers...))
	if p.empty() {
		return nil
	}
	_, failed := p.send(ctx, c, op{verb: "patch", doing: "releasing", needs: "patch"}, t)
	if failed == nil || errors.Is(failed, ErrGone) {
		return nil
	}
	return failed
}

// removeOwners removes the owner references to uid, from the last to the first so that indexes stay right.
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

// removeManagers removes the entries of managers. Where the list would become empty, a list of one empty entry takes
// its place, which is the API server's word for "none": an empty one it ignores in custom resources (though not in
// built-in kinds), for it might come from a client that has never heard of the field.
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
