package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ApplyStatus writes our part of the status of the object with that uid by a forced server-side apply and returns the
// object as stored. subresource reports whether the kind has a status subresource; then the request has its own
// managedFields entry and never changes the main resource. Otherwise status is a field like any other: then nothing
// else may be applied with this manager.
//
// status is all that we own: fields of an earlier call are removed. An undeclared field fails the whole apply
// (SchemaMismatch). ErrGone and ErrReplaced are as for Apply, with one exception: the status subresource of custom
// resources ignores the uid, so ErrReplaced then means that the status of another object was written. Its own next
// reconcile fixes it. A resourceVersion would prevent this, but conflict with every other writer.
func (c *Client) ApplyStatus(ctx context.Context, t Target, apiVersion, kind string, subresource bool, uid types.UID,
	status map[string]any) (*unstructured.Unstructured, error) {
	obj := map[string]any{"apiVersion": apiVersion, "kind": kind, "status": status}
	o := statusOp("apply", subresource)
	out, err := c.applyTo(ctx, o, t, uid, "", obj, false)
	if err != nil {
		return nil, err
	}
	return same(out, uid, o, t)
}

// PatchStatus merges status into the object's by a merge patch and returns the object as stored: for kinds whose
// conditions are an atomic list, which must be sent as a whole. Other fields stay; nil removes one. The API server
// silently drops undeclared fields, so that the conditions are written in any case; the result has what was stored.
// ErrConflict: the resourceVersion has changed. ErrReplaced, ErrGone: the object does not exist any more.
func (c *Client) PatchStatus(ctx context.Context, t Target, subresource bool, resourceVersion string, uid types.UID,
	status map[string]any) (*unstructured.Unstructured, error) {
	o := statusOp("patch", subresource)
	body := map[string]any{"status": status}
	if err := precondition(body, uid, resourceVersion); err != nil {
		return nil, &Error{Verb: o.verb, Target: t, Err: err, op: o}
	}
	opts := metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore}
	out, failed := c.patch(ctx, o, t, types.MergePatchType, body, opts)
	if failed != nil {
		return nil, c.explainConflict(ctx, t, uid, failed)
	}
	return same(out, uid, o, t)
}

// WithdrawStatus removes what the given field manager has applied to the status of live, except what others have
// applied too, and returns the object as stored; it sends no request if there is nothing. It is an empty apply by that
// manager: managedFields cannot be changed through a subresource.
func (c *Client) WithdrawStatus(ctx context.Context, t Target, live *unstructured.Unstructured, subresource bool,
	manager string) (*unstructured.Unstructured, error) {
	o := statusOp("apply", subresource)
	has := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == o.sub
	}
	if !slices.ContainsFunc(live.GetManagedFields(), has) {
		return live, nil
	}
	them := *c
	them.manager = manager
	out, err := them.applyTo(ctx, o, t, live.GetUID(), "", map[string]any{"apiVersion": live.GetAPIVersion(),
		"kind": live.GetKind()}, false)
	if err != nil {
		return nil, err
	}
	return same(out, live.GetUID(), o, t)
}

var errUIDIgnored = errors.New("the API server took the request for an object of another uid")

// same returns out if it is the object with that uid, else ErrReplaced.
func same(out *unstructured.Unstructured, uid types.UID, o op, t Target) (*unstructured.Unstructured, error) {
	if out.GetUID() != uid {
		return nil, &Error{Verb: o.verb, Target: t, Err: errUIDIgnored, Meaning: ErrReplaced, op: o}
	}
	return out, nil
}

func statusOp(verb string, subresource bool) op {
	o := op{verb: verb, doing: "writing the status of", needs: "patch"}
	if subresource {
		o.sub = "status"
	}
	return o
}
