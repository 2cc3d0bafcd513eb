package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Label sets labels of the object with that uid, whoever owns them, and changes nothing else. It returns the object as
// stored. ErrReplaced, ErrGone: the object does not exist any more.
func (c *Client) Label(
	ctx context.Context, t Target, uid types.UID, labels map[string]string,
) (*unstructured.Unstructured, error) {
	o := op{verb: "patch", doing: "labeling", needs: "patch"}
	body := map[string]any{"metadata": map[string]any{"uid": string(uid), "labels": labels}}
	out, failed := c.patch(ctx, o, t, types.MergePatchType, body, metav1.PatchOptions{DryRun: c.dryRun()})
	if failed != nil {
		return nil, c.explainConflict(ctx, t, uid, failed)
	}
	return out, nil
}

// Unmark removes marks from live, which was read as a whole, whoever owns them, and returns the object as stored; it
// sends no request if there are none. ErrConflict: live changed since; read it again.
func (c *Client) Unmark(
	ctx context.Context, t Target, live *unstructured.Unstructured, marks Marks,
) (*unstructured.Unstructured, error) {
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
