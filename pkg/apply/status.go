package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ApplyStatus brings our part of the status of the object with that uid to status by one forced server-side apply
// and returns the object as stored. subresource reports whether the kind has a status subresource; the request goes
// there, and makes a managedFields entry of its own, so that it never touches what is applied to the main
// resource. Without one, status is a field like any other: then nothing else of the object may be applied under
// this manager's name.
//
// status is what we own of it, whole: fields that an earlier call had are removed. Fields that the schema does not
// declare have all of it refused (SchemaMismatch). ErrGone, ErrReplaced: as for Apply, but for one thing. The status
// subresource of custom resources takes the metadata from the object that it finds, so a uid in the request binds
// nothing there: ErrReplaced then says that another object's status was written. Its own next status fixes it. A
// resourceVersion would bind, at the price of a conflict with every other writer of the object.
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

// PatchStatus merges status into the object's by one merge patch and returns the object as stored: for kinds whose
// conditions are an atomic list, where the whole list has to be sent. Fields that status does not name stay; a nil
// removes one. Fields that the schema does not declare are dropped by the API server without a word, so that the
// conditions are written even where nothing else can be: what was stored is in the result.
//
// The object must be the one that was read: ErrConflict where its resourceVersion has moved on, ErrReplaced or
// ErrGone where it is no longer there.
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

// WithdrawStatus removes what the given field manager has applied to the status of live, and returns the object as stored;
// it makes no request if there is nothing. What other managers have applied too stays. It is an empty apply under that
// manager's name: managedFields cannot be written through a subresource, and the right to write the status is enough.
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
	out, err := them.applyTo(ctx, o, t, live.GetUID(), "", map[string]any{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind()}, false)
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
