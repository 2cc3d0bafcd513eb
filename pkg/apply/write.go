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

// errNoUID is a mistake of the program: without a uid the API server would create the object or take another.
var errNoUID = errors.New("no uid was given")

// createOnly is the resourceVersion that makes an apply create-only: no object ever has it, for the store counts
// from 1 and its first write makes 2; and unlike no resourceVersion at all it conflicts with every object that
// exists, forced or not.
const createOnly = "1"

// Create makes the object by one server-side apply and returns it as the API server stored it. Where an object of
// that name exists – whosever it is, terminating or not – the answer is ErrExists and nothing is changed.
//
// obj is the whole document, apiVersion and kind included; name and namespace are t's. It takes the rights to
// create and to patch.
func (c *Client) Create(ctx context.Context, t Target, obj map[string]any) (*unstructured.Unstructured, error) {
	o := op{verb: "apply", doing: "creating", needs: "create and patch"}
	out, failed := c.apply(ctx, o, t, document(t, obj, "", createOnly), false)
	if failed == nil {
		return out, nil
	}
	if about(failed.Err, t) && (apierrors.IsConflict(failed.Err) || apierrors.IsAlreadyExists(failed.Err)) {
		return nil, failed.meaning(ErrExists)
	}
	return nil, failed
}

// Apply brings the object with that uid to obj by one forced server-side apply and returns it as stored; a target that yields is not
// forced. Fields
// that an earlier apply had and obj has not are removed, or reset to their defaults, unless another manager owns
// them too. It is also how an object that nobody owns is adopted: with the uid that was looked at.
//
// ErrGone: the object is not there any more, and none was made. ErrReplaced: another one has its name, and was
// left alone. ErrOwned: the target yields, and other managers have other values.
// A terminating object takes the apply like any other; the result then has a deletionTimestamp.
//
// Every field that the schema does not know is refused (see SchemaMismatch), never dropped in silence.
func (c *Client) Apply(ctx context.Context, t Target, uid types.UID, obj map[string]any) (*unstructured.Unstructured, error) {
	return c.applyTo(ctx, op{verb: "apply", doing: "applying", needs: "patch"}, t, uid, "", obj, false)
}

// ApplyAt is Apply to the object as it was read: ErrConflict where its resourceVersion has moved on, and then nothing is
// changed. It is for what is only right as long as nobody else has written.
func (c *Client) ApplyAt(ctx context.Context, t Target, uid types.UID, resourceVersion string,
	obj map[string]any) (*unstructured.Unstructured, error) {
	return c.applyTo(ctx, op{verb: "apply", doing: "applying", needs: "patch"}, t, uid, resourceVersion, obj, false)
}

// Withdraw removes the fields that only our manager owns from an object of others, and nothing else. It returns nil if the object is gone,
// or another one has its name.
func (c *Client) Withdraw(ctx context.Context, t Target, gvk schema.GroupVersionKind, uid types.UID) error {
	obj := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}
	_, err := c.applyTo(ctx, op{verb: "apply", doing: "withdrawing from", needs: "patch"}, t, uid, "", obj, false)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
		return nil
	}
	return err
}

// DryRunApply is Apply as far as the store, which it leaves as it is. It returns what Apply would have stored.
// Admission webhooks run; one that declares side effects has the API server refuse every dry run.
func (c *Client) DryRunApply(ctx context.Context, t Target, uid types.UID, obj map[string]any) (*unstructured.Unstructured, error) {
	return c.applyTo(ctx, op{verb: "apply", doing: "applying (dry run)", needs: "patch"}, t, uid, "", obj, true)
}

func (c *Client) applyTo(ctx context.Context, o op, t Target, uid types.UID, resourceVersion string, obj map[string]any,
	dryRun bool) (*unstructured.Unstructured, error) {
	if uid == "" {
		return nil, &Error{Verb: o.verb, Target: t, Err: errNoUID, op: o}
	}
	out, failed := c.apply(ctx, o, t, document(t, obj, uid, resourceVersion), dryRun)
	if failed != nil {
		return nil, c.explainConflict(ctx, t, uid, failed)
	}
	return out, nil
}

// apply sends one server-side apply, forced unless the target yields. The validation is strict: an apply is read against the schema
// whatever the level says – an unknown field is an error even at Ignore –, and a server that should come to obey
// the level must not begin to drop fields, since a dropped field would be drift forever.
func (c *Client) apply(ctx context.Context, o op, t Target, doc map[string]any, dryRun bool) (*unstructured.Unstructured, *Error) {
	force := !t.Yields
	opts := metav1.PatchOptions{Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return c.patch(ctx, o, t, types.ApplyYAMLPatchType, doc, opts)
}
