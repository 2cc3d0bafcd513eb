package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// DryRunCreate has the API server make obj under a generated name without storing it, and returns what it made:
// the document with every default filled in, as an object that consists of nothing else. The generated name
// begins with t's, so that it obeys the same rules of spelling; the API server shortens it where it is too long.
//
// Kinds that allow only certain names (a CRD with a rule on metadata.name, an APIService) refuse the generated
// one. To learn whether a document is acceptable, Accepts is the better question.
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

// Accepts asks whether the API server would create obj under its own name if no object had it: nil says yes. It
// tells a change to an immutable field (refused by Apply, accepted here) from a value that is bad in itself
// (refused by both, and alike with 422). Nothing is stored.
//
// It works because the API server validates a new object, admission included, before it looks whether the name
// is taken: that it is taken is the answer "acceptable". So kinds that constrain their names are judged rightly,
// which a generated name is not.
//
// A refusal may still be due to the very object that stands, as with a node port that it occupies: then the
// question cannot be answered without deleting it, and the answer is no.
func (c *Client) Accepts(ctx context.Context, t Target, obj map[string]any) error {
	_, failed := c.create(ctx, t, document(t, obj, "", ""))
	if failed == nil || apierrors.IsAlreadyExists(failed.Err) && about(failed.Err, t) {
		return nil
	}
	return failed
}

// AcceptsApply asks whether the API server would take obj in an apply to the object with that uid: nil says yes. Nothing is
// stored, and a client of WithDryRun does not count it among its answers.
func (c *Client) AcceptsApply(ctx context.Context, t Target, uid types.UID, obj map[string]any) error {
	asking := *c
	asking.dry = nil
	_, err := asking.DryRunApply(ctx, t, uid, obj)
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
