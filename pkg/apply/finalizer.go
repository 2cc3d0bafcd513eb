package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AddFinalizer adds the finalizer to obj, as it was read, and returns it as stored; it sends no request if it exists.
// ErrConflict: obj changed since; read it again. ErrGone: it does not exist any more. The API server refuses new
// finalizers on an object that is being deleted (Invalid). It sends a JSON patch: an apply by the same manager would
// remove everything else. That needs the right to patch the resource; the one on its finalizers subresource is not
// enough.
func (c *Client) AddFinalizer(ctx context.Context, t Target, obj *unstructured.Unstructured,
	name string) (*unstructured.Unstructured,
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

// SwapFinalizer replaces the finalizer old by name in one request, so that the object always has one; if name exists,
// it only removes old. Otherwise it is like AddFinalizer.
func (c *Client) SwapFinalizer(ctx context.Context, t Target, obj *unstructured.Unstructured, old,
	name string) (*unstructured.Unstructured,
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

// RemoveFinalizer removes the named finalizers from obj, as it was read, and returns it as stored; it sends no request
// if there are none. Removing the last finalizer of an object that is being deleted deletes it. ErrConflict: obj
// changed since. ErrGone: nothing is left to do.
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
