package release

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// beforeObjects takes the finalizer off the objects of deletion.before, which have it too: what was made for an
// upstream in namespace, where it is given.
func (r *Releaser) beforeObjects(ctx context.Context, f *load.File, client *apply.Client, namespace string) error {
	if !HasBefore(f) {
		return nil
	}
	b := f.Deletion.Before
	kind, err := r.Kinds.Kind(schema.FromAPIVersionAndKind(b.APIVersion, b.Kind))
	if kinds.IsNotDefined(err) {
		return nil
	}
	if err != nil {
		return err
	}
	one := &release{Releaser: r, gvr: kind.GVR, finalizers: f.Conventions.Finalizers(), client: client, count: &r.Before,
		selector: labels.Set(f.ConstantLabels()).String()}
	if namespace != "" {
		one.of = func(u *unstructured.Unstructured) bool { return ownerNamespace(f, u) == namespace }
	}
	var errs []error
	for _, ns := range beforeNamespaces(f, kind, namespace) {
		errs = append(errs, one.namespace(ctx, ns))
	}
	return errors.Join(errs...)
}

// HasBefore reports whether a config has deletion.before.
func HasBefore(f *load.File) bool { return f.Deletion.Before != nil && f.Deletion.Before.Kind != "" }

// Awaits says what comes before the end of an upstream that is being deleted; empty: nothing does.
func Awaits(f *load.File) string {
	switch {
	case HasBefore(f):
		return "deletion.before is done"
	case f.Deletion.Wait:
		return "its downstreams are (deletion.wait)"
	}
	return ""
}

// beforeNamespaces is where such objects may stand.
func beforeNamespaces(f *load.File, kind *kinds.Kind, namespace string) []string {
	var list []string
	switch target := f.Deletion.Before.TargetNamespaces; {
	case !kind.Namespaced:
	case target.From == config.NamespacesList:
		list = target.Names
	case target.From == config.NamespacesAny:
	case namespace != "":
		list = []string{namespace}
	default:
		list = f.Watch.Namespaces
	}
	if len(list) == 0 {
		return []string{""}
	}
	return slices.Clone(list)
}

// ownerNamespace is the namespace of the upstream for which an object was made: a reference is to the object's own.
func ownerNamespace(f *load.File, u *unstructured.Unstructured) string {
	if ref, _, ok := marks.ParseOwnerMark(u.GetAnnotations()[f.Conventions.Owner.Annotation]); ok {
		return ref.Namespace
	}
	return u.GetNamespace()
}
