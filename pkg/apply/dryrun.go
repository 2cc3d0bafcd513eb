package apply

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// DryRun collects the responses for a client that writes nothing. Each dry run starts from the stored object, without the ones
// before. It is safe for concurrent use.
type DryRun struct {
	mu      sync.Mutex
	answers map[Target]*unstructured.Unstructured
	errors  map[Target]error
}

// NewDryRun returns an empty DryRun, for WithDryRun.
func NewDryRun() *DryRun {
	return &DryRun{answers: map[Target]*unstructured.Unstructured{}, errors: map[Target]error{}}
}

// WithDryRun makes a client that writes nothing: every write has dryRun=All, so that the API server defaults, validates and
// admits the object and does not store it. d collects the responses.
func WithDryRun(d *DryRun) Option {
	return func(c *Client) { c.dry = d }
}

// Answer returns the object of the last successful dry run of a write; nil if there is none. It must not be changed.
func (d *DryRun) Answer(t Target) *unstructured.Unstructured {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answers[t]
}

// Error returns why the last write of t was refused; nil if it was not.
func (d *DryRun) Error(t Target) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.errors[t]
}

func (d *DryRun) answered(t Target, out *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[t] = out
	delete(d.errors, t)
}

func (d *DryRun) refused(t Target, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errors[t] = err
}

// without removes fields from the last response for t, as a removal after that write would; nil if there is none. A request
// could not: it would start from the stored object.
func (d *DryRun) without(t Target, paths []fieldpath.Path) *unstructured.Unstructured {
	last := d.Answer(t)
	if last == nil {
		return nil
	}
	last = last.DeepCopy()
	for _, p := range paths {
		fieldpath.Remove(last.Object, p)
	}
	d.answered(t, last)
	return last
}

// Dry reports whether the client sends its writes as dry runs.
func (c *Client) Dry() bool { return c.dry != nil }

// Stored is WouldStore that a client with WithDryRun records as the response to a write.
func (c *Client) Stored(ctx context.Context, t Target, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := c.WouldStore(ctx, t, obj)
	if c.dry != nil && err == nil {
		c.dry.answered(t, out)
	} else if failed := (*Error)(nil); c.dry != nil && errors.As(err, &failed) {
		c.dry.refused(t, failed)
	}
	return out, err
}

// WouldStore returns obj as the API server would store it, by a dry-run update: defaulted, validated and admitted. It gives the result of
// several writes, which a single dry run cannot. obj is the object as a dry run returned it, or as it was read, with changes; its
// managedFields say who owns which field. ErrConflict: the object has changed since. ErrGone: it does not exist any more.
func (c *Client) WouldStore(ctx context.Context, t Target, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	asking := *c
	asking.dry = NewDryRun()
	p := patchOf(obj)
	p.replace(obj.Object)
	out, failed := p.send(ctx, &asking, op{verb: "patch", doing: "replacing (dry run)", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	out.SetManagedFields(obj.GetManagedFields())
	return out, nil
}

// dryRun returns the dryRun option of a write.
func (c *Client) dryRun() []string {
	if c.dry == nil {
		return nil
	}
	return []string{metav1.DryRunAll}
}

// DryRunUnsupported reports whether a dry run failed because of an admission webhook with side effects: the API server then
// refuses every dry run of the kind, which says nothing about the write itself.
func DryRunUnsupported(err error) bool {
	s, ok := status(err)
	return ok && apierrors.IsBadRequest(err) && refusesDryRuns(s.Message)
}
