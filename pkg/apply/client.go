package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Target is the object that a request is for.
type Target struct {
	GVR       schema.GroupVersionResource
	Namespace string // "" for a cluster-scoped kind
	Name      string
	// Yields means that an apply does not take fields from other managers.
	Yields bool
}

// String returns "deployments.apps apps/web", or "namespaces web" for a cluster-scoped kind.
func (t Target) String() string {
	name := t.Name
	if t.Namespace != "" {
		name = t.Namespace + "/" + t.Name
	}
	return t.resource("") + " " + name
}

// resource returns the resource as in RBAC's documentation: deployments.apps, or deployments.apps/status for a subresource.
func (t Target) resource(sub string) string {
	s := t.GVR.GroupResource().String()
	if sub != "" {
		s += "/" + sub
	}
	return s
}

// Observer is called after each request. verb is apply, create (a dry run), patch, delete, get or list; resource is like
// deployments.apps or deployments.apps/status; code is the HTTP status: 200 for every success, 0 if there was no response. It
// must be safe for concurrent use.
type Observer func(verb, resource string, code int)

// Client sends requests with one field manager. It is safe for concurrent use.
type Client struct {
	dynamic dynamic.Interface
	manager string
	observe Observer
	dry     *DryRun // nil: it writes
}

// Option is an option of New.
type Option func(*Client)

// WithObserver makes the client call f for each request.
func WithObserver(f Observer) Option {
	return func(c *Client) { c.observe = f }
}

// New returns a client that writes through d with the given field manager. The manager must not be empty and must be unique:
// the API server distinguishes writers only by it.
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

// op describes a kind of request.
type op struct {
	verb  string // for observers
	doing string // the start of errors
	needs string // the required RBAC verbs
	sub   string // the subresource
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
	if c.dry != nil {
		opts.DryRun = c.dryRun()
	}
	out, err := c.resource(t).Patch(ctx, t.Name, pt, data, opts, subs...)
	if failed := c.done(o, t, err); failed != nil {
		if c.dry != nil {
			c.dry.refused(t, failed)
		}
		return nil, failed
	}
	if c.dry != nil && o.sub == "" {
		c.dry.answered(t, out)
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
