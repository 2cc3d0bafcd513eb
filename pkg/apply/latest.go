package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Latest is Get with only the right to list, which every client that watches a kind has.
func (c *Client) Latest(ctx context.Context, t Target) (*unstructured.Unstructured, error) {
	list, err := c.list(ctx, t, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, t.Name).String()})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, ErrGone
	}
	return &list.Items[0], nil
}

// Version returns the resource version of the API server's latest data of a kind: later changes have a later one. The target's
// name is ignored.
func (c *Client) Version(ctx context.Context, t Target) (string, error) {
	list, err := c.list(ctx, t, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.GetResourceVersion(), nil
}

// list lists from the API server, not from a cache.
func (c *Client) list(ctx context.Context, t Target, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := c.resource(t).List(ctx, o)
	if failed := c.done(op{verb: "list", doing: "reading", needs: "list"}, t, err); failed != nil {
		return nil, failed.meaningFor(t)
	}
	return list, nil
}
