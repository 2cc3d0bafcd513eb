package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// DryRunCreate makes a dry-run create of obj with a generated name, and returns the object with every default. The
// generated name begins with t's, so that the same rules apply; the API server shortens it if it is too long. Kinds
// that allow only certain names (a CRD with a rule for metadata.name, an APIService) refuse it. Use Accepts to find out
// whether a document is valid.
func (c *Client) DryRunCreate(ctx context.Context, t Target, obj map[string]any) (*unstructured.Unstructured, error) {
	doc := document(t, obj, "", "")
	meta := doc["metadata"].(map[string]any)
	delete(meta, "name")
	meta["generateName"] = t.Name + "-"
	out, failed := c.create(ctx, t, doc)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// Accepts asks whether the API server would create obj if no object had its name: nil means yes. This distinguishes a
// change to an immutable field (refused by Apply, accepted here) from an invalid value (refused by both with 422).
// Nothing is stored.
//
// The API server validates and admits a new object before it checks whether the name exists, so AlreadyExists means
// that obj is acceptable, also for kinds that restrict names. A refusal may be due to the existing object, for example
// to its node port: then the result is no, because only deleting the object would show it.
func (c *Client) Accepts(ctx context.Context, t Target, obj map[string]any) error {
	_, failed := c.create(ctx, t, document(t, obj, "", ""))
	if failed == nil || apierrors.IsAlreadyExists(failed.Err) && isAbout(failed.Err, t) {
		return nil
	}
	return failed
}

// AcceptsApply asks whether the API server would accept an apply of obj to the object with that uid: nil means yes.
// Nothing is stored.
func (c *Client) AcceptsApply(ctx context.Context, t Target, uid types.UID, obj map[string]any) error {
	_, err := c.DryRunApply(ctx, t, uid, obj)
	return err
}

func (c *Client) create(ctx context.Context, t Target, doc map[string]any) (*unstructured.Unstructured, *Error) {
	o := op{verb: "create", doing: "creating (dry run)", needs: "create"}
	if e := check(doc); e != nil {
		return nil, &Error{Verb: o.verb, Target: t, Err: e, op: o}
	}
	out, err := c.resource(t).Create(ctx, &unstructured.Unstructured{Object: doc}, metav1.CreateOptions{
		DryRun:          []string{metav1.DryRunAll},
		FieldManager:    c.manager,
		FieldValidation: metav1.FieldValidationStrict,
	})
	if failed := c.done(o, t, err); failed != nil {
		return nil, failed
	}
	return out, nil
}
