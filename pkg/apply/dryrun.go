package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WithDryRun makes a client that writes nothing: every write has dryRun=All, so that the API server defaults, validates
// and admits the object and does not store it. Each dry run starts from the stored object, without the ones before.
func WithDryRun() Option {
	return func(c *Client) { c.dry = true }
}

// DryRun returns the same client with WithDryRun.
func (c *Client) DryRun() *Client {
	asking := *c
	asking.dry = true
	return &asking
}

// Dry reports whether the client sends its writes as dry runs.
func (c *Client) Dry() bool { return c.dry }

// WouldStore returns obj as the API server would store it, by a dry-run update: defaulted, validated and admitted. It
// gives the result of several writes, which a single dry run cannot. obj is the object as a dry run returned it, or as
// it was read, with changes; its managedFields say who owns which field. ErrConflict: the object has changed since.
// ErrGone: it does not exist any more.
func (c *Client) WouldStore(
	ctx context.Context, t Target, obj *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	p := patchOf(obj)
	p.replace(obj.Object)
	out, failed := p.send(ctx, c.DryRun(), op{verb: "patch", doing: "replacing (dry run)", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	out.SetManagedFields(obj.GetManagedFields())
	return out, nil
}

// dryRun returns the dryRun option of a write.
func (c *Client) dryRun() []string {
	if !c.dry {
		return nil
	}
	return []string{metav1.DryRunAll}
}

// DryRunUnsupported reports whether a dry run failed because of an admission webhook with side effects: the API server
// then refuses every dry run of the kind, which says nothing about the write itself.
func DryRunUnsupported(err error) bool {
	s, ok := status(err)
	return ok && apierrors.IsBadRequest(err) && refusesDryRuns(s.Message)
}
