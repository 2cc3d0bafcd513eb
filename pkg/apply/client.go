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
	// Yields: an apply takes no fields of other managers.
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

// resource returns the resource as people and RBAC's documentation write it: deployments.apps, or
// deployments.apps/status for a subresource.
func (t Target) resource(sub string) string {
	s := t.GVR.GroupResource().String()
	if sub != "" {
		s += "/" + sub
	}
	return s
}

// Observer hears of each request that was made, after it was answered. verb is apply, create (a dry run),
// patch, delete, get or list; resource is like deployments.apps or deployments.apps/status; code is the HTTP status:
// 200 for every success (client-go does not tell 201 apart), 0 where no answer came. It must be safe for
// concurrent use.
type Observer func(verb, resource string, code int)

// Client makes requests under one field manager's name. It is safe for concurrent use.
type Client struct {
	dynamic dynamic.Interface
	manager string
	observe Observer
	dry     *DryRun // nil: it writes
}

// Option changes a Client at its making.
type Option func(*Client)

// WithObserver has f called for each request.
func WithObserver(f Observer) Option {
	return func(c *Client) { c.observe = f }
}

// New returns a client that writes over d as the field manager named manager, which must not be empty and must
// be nobody else's: the API server tells writers apart by that name alone.
func New(d dynamic.Interface, manager string, opts ...Option) *Client {
	c := &Client{dynamic: d, manager: manager, observe: func(string, string, int) {}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Get reads the object from the API server, past every cache. It returns ErrGone if there is none.
func (c *Client) Get(ctx context.Context, t Target) (*unstructured.Unstructured, error) {
	out, err := c.resource(t).Get(ctx, t.Name, metav1.GetOptions{})
	if failed := c.done(op{verb: "get", doing: "reading", needs: "get"}, t, err); failed != nil {
		return nil, failed.of(t)
	}
	return out, nil
}

// op is the kind of a request, in the words for those who read of it.
type op struct {
	verb  string // what observers hear
	doing string // what errors begin with
	needs string // the verbs of RBAC that it takes
	sub   string // the subresource that it goes to
}

func (c *Client) resource(t Target) dynamic.ResourceInterface {
	if t.Namespace == "" {
		return c.dynamic.Resource(t.GVR)
	}
	return c.dynamic.Resource(t.GVR).Namespace(t.Namespace)
}

// patch sends one patch of any type under the manager's name.
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

// done tells the observer of an answer and makes an *Error of a refusal.
func (c *Client) done(o op, t Target, err error) *Error {
	c.observe(o.verb, t.resource(o.sub), code(err))
	if err == nil {
		return nil
	}
	return &Error{Verb: o.verb, Target: t, Err: err, op: o}
}
