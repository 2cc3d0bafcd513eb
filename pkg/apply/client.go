package apply

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// Observer is called after each request. verb is apply, create (a dry run), patch, delete, get or list; resource is
// like deployments.apps or deployments.apps/status; code is the HTTP status: 200 for every success, 0 if there was no
// response. It must be safe for concurrent use.
type Observer func(verb, resource string, code int)

// Client sends requests with one field manager. It is safe for concurrent use.
type Client struct {
	dynamic dynamic.Interface
	manager string
	observe Observer
	dry     bool // it writes nothing
}

// Option is an option of New.
type Option func(*Client)

// WithObserver makes the client call f for each request.
func WithObserver(f Observer) Option {
	return func(c *Client) { c.observe = f }
}

// New returns a client that writes through d with the given field manager. The manager must not be empty and must be
// unique: the API server distinguishes writers only by it.
func New(d dynamic.Interface, manager string, opts ...Option) *Client {
	c := &Client{dynamic: d, manager: manager, observe: func(string, string, int) {}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Get reads the object from the API server, not from a cache. It returns ErrGone if there is none.
func (c *Client) Get(ctx context.Context, t Target) (*unstructured.Unstructured, error) {
	out, err := c.resource(t).Get(ctx, t.Name, metav1.GetOptions{})
	if failed := c.done(op{verb: "get", doing: "reading", needs: "get"}, t, err); failed != nil {
		return nil, failed.meaningFor(t)
	}
	return out, nil
}

func (c *Client) resource(t Target) dynamic.ResourceInterface {
	if t.Namespace == "" {
		return c.dynamic.Resource(t.GVR)
	}
	return c.dynamic.Resource(t.GVR).Namespace(t.Namespace)
}

// patch sends one patch of any type with the client's field manager.
func (c *Client) patch(ctx context.Context, o op, t Target, pt types.PatchType, body any,
	opts metav1.PatchOptions) (*unstructured.Unstructured, *Error) {
	data, err := encode(body)
	if err != nil {
		return nil, &Error{Verb: o.verb, Target: t, Err: err, op: o}
	}
	var subs []string
	if o.sub != "" {
		subs = []string{o.sub}
	}
	opts.FieldManager = c.manager
	if c.dry {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	out, err := c.resource(t).Patch(ctx, t.Name, pt, data, opts, subs...)
	if failed := c.done(o, t, err); failed != nil {
		return nil, failed
	}
	return out, nil
}

// done calls the observer and converts a refusal to an *Error.
func (c *Client) done(o op, t Target, err error) *Error {
	c.observe(o.verb, t.resource(o.sub), code(err))
	if err == nil {
		return nil
	}
	return &Error{Verb: o.verb, Target: t, Err: err, op: o}
}

// explainConflict finds the meaning of a 409 for a request with a uid. The API server returns 409 if the object is
// gone, if the uid in the precondition differs, and for concurrent writes; only the text differs. A mistake would leave
// an object behind or report it as lost, so this reads the object.
func (c *Client) explainConflict(ctx context.Context, t Target, uid types.UID, e *Error) *Error {
	if e = e.meaningFor(t); e.Meaning != nil {
		return e
	}
	if apierrors.HasStatusCause(e.Err, metav1.CauseTypeFieldManagerConflict) {
		return e.meaning(ErrOwned)
	}
	conflict := apierrors.IsConflict(e.Err)
	if !conflict && !objectNotFound(e.Err, t) {
		return e
	}
	live, err := c.Get(ctx, t)
	switch {
	case errors.Is(err, ErrGone):
		return e.meaning(ErrGone)
	case err == nil && live.GetUID() != uid:
		return e.meaning(ErrReplaced)
	case conflict:
		return e.meaning(ErrConflict)
	}
	return e
}

// Latest is Get with only the right to list, which every client that watches a kind has.
func (c *Client) Latest(ctx context.Context, t Target) (*unstructured.Unstructured, error) {
	list, err := c.list(ctx, t,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, t.Name).String()})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, ErrGone
	}
	return &list.Items[0], nil
}

// Version returns the resource version of the API server's latest data of a kind: later changes have a later one. The
// target's name is ignored.
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
