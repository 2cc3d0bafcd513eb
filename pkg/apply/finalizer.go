package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AddFinalizer puts the finalizer name on obj, as it was read, and returns it as stored; without a request where
// it is there already. ErrConflict: obj changed since; read it again. ErrGone: it is not there any more. The API
// server refuses new finalizers on an object that is being deleted (Invalid).
//
// It is a JSON patch, never an apply: on an object that the same manager applies, an apply of the finalizer alone
// would drop everything else. It takes the right to patch the resource; the one on its finalizers subresource
// does not do.
func (c *Client) AddFinalizer(ctx context.Context, t Target, obj *unstructured.Unstructured, name string) (*unstructured.Unstructured,
	error) {
	have := obj.GetFinalizers()
	if slices.Contains(have, name) {
		return obj, nil
	}
	p := patchOf(obj)
	if len(have) == 0 {
		p.add([]any{name}, "metadata", "finalizers")
	} else {
		p.add(name, "metadata", "finalizers", "-")
	}
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "adding a finalizer to", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// SwapFinalizer puts the finalizer name in the place of the one named old, in one request, so that the object is never
// without; where it has name already, old just goes. The rest is as for AddFinalizer.
func (c *Client) SwapFinalizer(ctx context.Context, t Target, obj *unstructured.Unstructured, old, name string) (*unstructured.Unstructured,
	error) {
	have := obj.GetFinalizers()
	at := slices.Index(have, old)
	if at < 0 {
		return c.AddFinalizer(ctx, t, obj, name)
	}
	p := patchOf(obj)
	p.test(old, "metadata", "finalizers", index(at))
	p.remove("metadata", "finalizers", index(at))
	if !slices.Contains(have, name) {
		p.add(name, "metadata", "finalizers", index(at))
	}
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "renaming a finalizer of", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// RemoveFinalizer takes the finalizers of these names off obj, as it was read, leaves all others, and returns it as
// stored; without a request where none is there. The last finalizer of an object that is being deleted lets it go.
// ErrConflict: obj changed since; read it again. ErrGone: it is not there any more, so nothing is left to do.
func (c *Client) RemoveFinalizer(ctx context.Context, t Target, obj *unstructured.Unstructured,
	names ...string) (*unstructured.Unstructured, error) {
	p := patchOf(obj)
	for at, have := range slices.Backward(obj.GetFinalizers()) { // so that indexes stay right
		if slices.Contains(names, have) {
			p.test(have, "metadata", "finalizers", index(at))
			p.remove("metadata", "finalizers", index(at))
		}
	}
	if p.empty() {
		return obj, nil
	}
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "removing a finalizer from", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}
