package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unmark removes marks from live, which was read as a whole, whoever owns them, and returns the object as stored; it sends no
// request if there are none. ErrConflict: live changed since; read it again.
func (c *Client) Unmark(ctx context.Context, t Target, live *unstructured.Unstructured, marks Marks) (*unstructured.Unstructured, error) {
	p := patchOf(live)
	p.removeOwners(live, marks.OwnerUID)
	p.removeKeys("labels", live.GetLabels(), marks.Labels)
	p.removeKeys("annotations", live.GetAnnotations(), marks.Annotations)
	if p.empty() {
		return live, nil
	}
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "taking previous marks off", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}
