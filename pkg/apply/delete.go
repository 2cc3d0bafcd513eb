package apply

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Delete deletes the object with that uid. It returns nil as soon as the API server accepts the request – the object may exist until its
// finalizers are gone – and also if the object is gone. ErrReplaced: another object has the name; nothing was deleted. propagation is
// required: without one the API server uses each kind's default, and the one of Jobs keeps their pods.
func (c *Client) Delete(ctx context.Context, t Target, uid types.UID, propagation metav1.DeletionPropagation) error {
	o := op{verb: "delete", doing: "deleting", needs: "delete"}
	if uid == "" {
		return &Error{Verb: o.verb, Target: t, Err: errNoUID, op: o}
	}
	err := c.resource(t).Delete(ctx, t.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &propagation,
		DryRun:            c.dryRun(),
	})
	failed := c.done(o, t, err)
	if failed == nil {
		return nil
	}
	if c.dry != nil {
		c.dry.refused(t, failed)
	}
	if failed = c.explainConflict(ctx, t, uid, failed); errors.Is(failed, ErrGone) {
		return nil
	}
	return failed
}
