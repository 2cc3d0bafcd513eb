// Package release takes the finalizers of an operator off its upstreams, while no process runs that would put them on
// again.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/pages"
)

const (
	// pageSize is how many upstreams one list asks for.
	pageSize = 500
	// releaseAttempts bounds how often an upstream that others write meanwhile is read again.
	releaseAttempts = 5
)

// Releaser takes finalizers off upstreams.
type Releaser struct {
	Client dynamic.Interface
	Kinds  kinds.Source
	// Out gets a line for each object.
	Out    io.Writer
	DryRun bool
	// MayWrite waits, where a write was held back, until it may be sent after all; false: it never may. nil where none is.
	MayWrite func(context.Context) bool
	// Here is true if the configs are known to be this cluster's: then a kind that is not served has no objects, and
	// is not a sign of a mistake.
	Here bool
	// SkipsBefore releases also what is being deleted and waits for deletion.before, or by deletion.wait.
	SkipsBefore bool
	Done        int // upstreams that no longer bear the finalizer, or would not
	Before      int // objects of deletion.before of which the same is true
}

// Operator releases the upstreams of one config, in one namespace where it is given. It needs only watch and
// conventions of the config. Label selectors do not count: an upstream that is no longer selected may have the
// finalizer still.
func (r *Releaser) Operator(ctx context.Context, f *load.File, namespace string) error {
	watch := f.Watch
	if len(f.Conventions.Finalizers()) == 0 {
		fmt.Fprintf(r.Out, "operator %s has no finalizer\n", f.Metadata.Name)
		return nil
	}
	client := apply.New(r.Client, f.Conventions.FieldManager)
	kind, err := r.Kinds.Kind(schema.FromAPIVersionAndKind(watch.APIVersion, watch.Kind))
	switch {
	case r.Here && kinds.IsNotDefined(err):
		fmt.Fprintf(r.Out, "operator %s: %v\n", f.Metadata.Name, err)
		return r.beforeObjects(ctx, f, client, namespace)
	case err != nil:
		return err
	}
	namespaces := watch.Namespaces
	switch {
	case !kind.Namespaced || len(namespaces) == 0 && namespace == "":
		namespaces = []string{""}
	case namespace != "" && len(namespaces) > 0 && !slices.Contains(namespaces, namespace):
		return fmt.Errorf("namespace %s is not among those that it watches", namespace)
	case namespace != "":
		namespaces = []string{namespace}
	}
	if err := r.orphans(ctx, f, client, namespaces); err != nil {
		return err
	}
	if err := r.upstreams(ctx, f, client, kind, namespaces); err != nil {
		if errors.Is(err, ErrNeedsOperator) {
			return err
		}
		return errors.Join(err, r.beforeObjects(ctx, f, client, namespace))
	}
	return r.beforeObjects(ctx, f, client, namespace)
}

// upstreams releases those in some namespaces.
func (r *Releaser) upstreams(
	ctx context.Context, f *load.File, client *apply.Client, kind *kinds.Kind, namespaces []string,
) error {
	finalizers := f.Conventions.Finalizers()
	one := &release{Releaser: r, gvr: kind.GVR, finalizers: finalizers, client: client, count: &r.Done}
	var errs []error
	if first := Awaits(f); first != "" && !r.SkipsBefore {
		one.of = func(u *unstructured.Unstructured) bool {
			if u.GetDeletionTimestamp() == nil {
				return true
			}
			errs = append(errs, fmt.Errorf("%s %s: it is being deleted, and would be gone before %s: %w", kind.GVK.Kind,
				strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"), first, ErrNeedsOperator))
			return false
		}
	}
	for _, ns := range namespaces {
		errs = append(errs, one.namespace(ctx, ns))
	}
	return errors.Join(errs...)
}

// ErrNeedsOperator ends a release of upstreams that are being deleted in an order that only the operator keeps.
var ErrNeedsOperator = errors.New("have the operator run until it is gone, or give --skip-before")

// release is the work on one operator's upstreams, or on what it made before deletions.
type release struct {
	*Releaser
	client     *apply.Client
	gvr        schema.GroupVersionResource
	finalizers []string
	// selector narrows what is listed, of narrows it further; nil takes everything.
	selector string
	of       func(*unstructured.Unstructured) bool
	count    *int
}

// namespace releases page by page; "" is all namespaces. It goes on past failures and returns them all.
func (r *release) namespace(ctx context.Context, namespace string) error {
	var errs []error
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: r.selector}
	list := func(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		page, err := r.resource(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.gvr.GroupResource(), err)
		}
		return page, nil
	}
	err := pages.Each(ctx, options, list, func(page *unstructured.UnstructuredList) error {
		for i := 0; i < len(page.Items) && ctx.Err() == nil; i++ {
			errs = append(errs, r.one(ctx, &page.Items[i]))
		}
		return ctx.Err()
	})
	return errors.Join(append(errs, err)...)
}

// one releases one upstream, reading it again where it changes meanwhile, or may have while a write was held back.
func (r *release) one(ctx context.Context, u *unstructured.Unstructured) error {
	bears := slices.DeleteFunc(slices.Clone(r.finalizers), func(name string) bool {
		return !slices.Contains(u.GetFinalizers(), name)
	})
	if len(bears) == 0 || r.of != nil && !r.of(u) {
		return nil
	}
	names := strings.Join(bears, ", ")
	target := apply.Target{GVR: r.gvr, Namespace: u.GetNamespace(), Name: u.GetName()}
	if r.DryRun {
		*r.count++
		fmt.Fprintf(r.Out, "%s: finalizer %s would be removed\n", target, names)
		return nil
	}
	_, err := r.client.RemoveFinalizer(ctx, target, u, bears...)
	for range releaseAttempts {
		if !errors.Is(err, apply.ErrConflict) && !r.mayRetry(ctx, err) {
			break
		}
		var fresh *unstructured.Unstructured
		if fresh, err = r.again(ctx, u); err != nil || fresh == nil {
			break
		}
		if r.of != nil && !r.of(fresh) { // it is being deleted by now
			return nil
		}
		_, err = r.client.RemoveFinalizer(ctx, target, fresh, bears...)
	}
	if err != nil && !errors.Is(err, apply.ErrGone) {
		return err
	}
	*r.count++
	fmt.Fprintf(r.Out, "%s: finalizer %s removed\n", target, names)
	return nil
}

// mayRetry reports whether err is about a write that was held back, since another process might lead, and none does.
func (r *release) mayRetry(ctx context.Context, err error) bool {
	var refused *leadership.RefusedError
	return errors.As(err, &refused) && r.MayWrite(ctx)
}

// again reads an upstream by the right to list alone. It returns nil where it is gone or another has its name.
func (r *release) again(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	list, err := r.resource(u.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", r.gvr.GroupResource(), u.GetName(), err)
	}
	if len(list.Items) != 1 || list.Items[0].GetUID() != u.GetUID() {
		return nil, nil
	}
	return &list.Items[0], nil
}

func (r *release) resource(namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return r.Releaser.Client.Resource(r.gvr)
	}
	return r.Releaser.Client.Resource(r.gvr).Namespace(namespace)
}
