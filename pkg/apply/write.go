package apply

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// errNoUID is an internal error: without a uid the API server would create the object or change another one.
var errNoUID = errors.New("no uid was given")

// createOnly is the resourceVersion that makes an apply create-only: no object ever has it, because the store counts
// from 1 and its first write makes 2. It conflicts with every existing object, forced or not.
const createOnly = "1"

// Create creates the object by a server-side apply and returns it as stored. If an object of that name exists – whoever
// owns it, terminating or not – it returns ErrExists and changes nothing. obj is the whole document, with apiVersion
// and kind; name and namespace are t's. It needs the rights to create and to patch.
func (c *Client) Create(ctx context.Context, t Target, obj map[string]any) (*unstructured.Unstructured, error) {
	o := op{verb: "apply", doing: "creating", needs: "create and patch"}
	out, failed := c.sendApply(ctx, o, t, document(t, obj, "", createOnly), false)
	if failed == nil {
		return out, nil
	}
	if isAbout(failed.Err, t) && (apierrors.IsConflict(failed.Err) || apierrors.IsAlreadyExists(failed.Err)) {
		return nil, failed.meaning(ErrExists)
	}
	return nil, failed
}

// Apply changes the object with that uid to obj by a server-side apply, forced unless t yields, and returns it as
// stored. Fields that an earlier apply had and obj does not have are removed, or reset to their defaults, unless
// another manager owns them too. Unknown fields are refused (SchemaMismatch). It also adopts an object without an
// owner, with the uid that was read.
//
// ErrGone: the object does not exist, and none was created. ErrReplaced: another object has its name, and was not
// changed. ErrOwned: t yields, and other managers have other values. A terminating object accepts the apply; the result
// has a deletionTimestamp.
func (c *Client) Apply(
	ctx context.Context, t Target, uid types.UID, obj map[string]any,
) (*unstructured.Unstructured, error) {
	return c.applyTo(ctx, op{verb: "apply", doing: "applying", needs: "patch"}, t, uid, "", obj, false)
}

// ApplyAt is Apply to the object as it was read: ErrConflict if its resourceVersion has changed, and then nothing is
// changed. Use it for changes that are only right if there was no other write.
func (c *Client) ApplyAt(ctx context.Context, t Target, uid types.UID, resourceVersion string,
	obj map[string]any) (*unstructured.Unstructured, error) {
	return c.applyTo(ctx, op{verb: "apply", doing: "applying", needs: "patch"}, t, uid, resourceVersion, obj, false)
}

// Withdraw removes the fields that only our manager owns from an object of others, and nothing else. It returns the
// object; nil if it is gone or replaced.
func (c *Client) Withdraw(
	ctx context.Context, t Target, gvk schema.GroupVersionKind, uid types.UID,
) (*unstructured.Unstructured, error) {
	obj := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}
	out, err := c.applyTo(ctx, op{verb: "apply", doing: "withdrawing from", needs: "patch"}, t, uid, "", obj, false)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
		return nil, nil
	}
	return out, err
}

// DryRunApply returns a dry run of Apply. It returns what Apply would have stored. Admission webhooks run; because of
// one with side effects the API server refuses every dry run.
func (c *Client) DryRunApply(
	ctx context.Context, t Target, uid types.UID, obj map[string]any,
) (*unstructured.Unstructured, error) {
	return c.applyTo(ctx, op{verb: "apply", doing: "applying (dry run)", needs: "patch"}, t, uid, "", obj, true)
}

func (c *Client) applyTo(ctx context.Context, o op, t Target, uid types.UID, resourceVersion string, obj map[string]any,
	dryRun bool) (*unstructured.Unstructured, error) {
	if uid == "" {
		return nil, &Error{Verb: o.verb, Target: t, Err: errNoUID, op: o}
	}
	out, failed := c.sendApply(ctx, o, t, document(t, obj, uid, resourceVersion), dryRun)
	if failed != nil {
		return nil, c.explainConflict(ctx, t, uid, failed)
	}
	return out, nil
}

// sendApply sends one server-side apply, forced unless the target yields. The validation is strict: today API servers
// refuse unknown fields in an apply at every level, and one that honors the level must not drop fields, because that
// would be drift forever.
func (c *Client) sendApply(
	ctx context.Context, o op, t Target, doc map[string]any, dryRun bool,
) (*unstructured.Unstructured, *Error) {
	force := !t.Yields
	opts := metav1.PatchOptions{Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return c.patch(ctx, o, t, types.ApplyYAMLPatchType, doc, opts)
}
