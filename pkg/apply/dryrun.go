package apply

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// DryRun has the answers to a client that writes nothing. Dry runs do not add up: each is answered as if the ones before
// had never been. It is safe for concurrent use.
type DryRun struct {
	mu      sync.Mutex
	answers map[Target]*unstructured.Unstructured
	errors  map[Target]error
}

// NewDryRun returns a DryRun without answers, for WithDryRun.
func NewDryRun() *DryRun {
	return &DryRun{answers: map[Target]*unstructured.Unstructured{}, errors: map[Target]error{}}
}

// WithDryRun makes a client that writes nothing: every write goes with dryRun=All, so that the API server defaults,
// validates and admits as ever and stores nothing. d collects what it answered.
func WithDryRun(d *DryRun) Option {
	return func(c *Client) { c.dry = d }
}

// Answer returns the object as the API server would have stored it last; nil if no write of it was answered. It must
// not be changed.
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

// without takes fields out of the last answer about t, which is what a removal after that write would have left; nil
// if there is none. No request could tell: it would find the object as it was before.
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

// Dry reports whether the client makes dry runs of its writes.
func (c *Client) Dry() bool { return c.dry != nil }

// Stored returns obj as the API server would store it in the place of what stands, by a dry run: with defaults for what obj
// lacks, validated and admitted. It is for what several writes would come to, of which no one dry run can tell. obj is the
// object as a dry run returned it, or as it was read, with changes; its managedFields say whose the fields would be and stay.
//
// ErrConflict: the object has changed since. ErrGone: it is not there any more.
func (c *Client) Stored(ctx context.Context, t Target, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	dry := *c
	if dry.dry == nil {
		dry.dry = NewDryRun()
	}
	p := patchOf(obj)
	p.replace(obj.Object)
	out, failed := p.send(ctx, &dry, op{verb: "patch", doing: "replacing (dry run)", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	out.SetManagedFields(obj.GetManagedFields())
	return out, nil
}

// dryRun is what a write's options say.
func (c *Client) dryRun() []string {
	if c.dry == nil {
		return nil
	}
	return []string{metav1.DryRunAll}
}

// DryRunUnsupported tells of a failed dry run that an admission webhook with side effects is in its way: the API server
// then refuses every dry run of the kind, and says nothing about the write itself.
func DryRunUnsupported(err error) bool {
	s, ok := status(err)
	return ok && apierrors.IsBadRequest(err) && refusesDryRuns(s.Message)
}
