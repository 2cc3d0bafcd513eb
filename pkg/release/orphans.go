package release

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pages"
)

// orphans takes the owner references off what a changed config keeps (deletionPolicy: Orphan): without an operator, the
// garbage collector would delete it with its upstream. Objects of a kind of which other downstreams are not kept are
// only named.
func (r *Releaser) orphans(ctx context.Context, f *load.File, client *apply.Client, namespaces []string) error {
	type place struct {
		schema.GroupVersionKind
		namespace string
	}
	done := map[place]bool{}
	for i := range f.Downstreams {
		d := &f.Downstreams[i]
		gvk := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
		if gvk.Kind == "" || gvk.Version == "" || !d.OutlivesUpstream() {
			continue
		}
		all := !slices.ContainsFunc(f.Downstreams, func(o config.Downstream) bool {
			return o.APIVersion == d.APIVersion && o.Kind == d.Kind && !o.OwnsFields() && !o.OutlivesUpstream()
		})
		kind, err := r.Kinds.Kind(gvk)
		if kinds.IsNotDefined(err) {
			continue
		}
		if err != nil {
			return err
		}
		at := namespacesOf(d, kind, namespaces)
		one := &release{Releaser: r, client: client, gvr: kind.GVR}
		for _, ns := range at {
			if done[place{gvk, ns}] {
				continue
			}
			done[place{gvk, ns}] = true
			if err := one.keep(ctx, f, ns, all); apierrors.IsForbidden(err) {
				fmt.Fprintf(r.Out, "note: %s with deletionPolicy: Orphan cannot be listed or changed: those with an owner "+
					"reference are deleted with "+
					"their upstream\n", kind.GVR.GroupResource())
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// namespacesOf are those of the namespaces in which objects of a downstream may be and have an owner reference: the
// upstream's own, of a cluster-scoped one any; "" for all.
func namespacesOf(d *config.Downstream, kind *kinds.Kind, watched []string) (list []string) {
	switch {
	case !kind.Namespaced:
		return []string{""}
	case d.TargetNamespaces.From != config.NamespacesList:
		return watched
	case slices.Contains(watched, ""):
		return d.TargetNamespaces.Names
	}
	return slices.DeleteFunc(slices.Clone(watched), func(ns string) bool {
		return !slices.Contains(d.TargetNamespaces.Names, ns)
	})
}

// keep takes the references to upstreams off the operator's objects in a namespace; of a mixed kind it only names them.
func (r *release) keep(ctx context.Context, f *load.File, namespace string, all bool) error {
	watched := schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind).GroupKind()
	isUpstream := func(o metav1.OwnerReference) bool {
		return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind() == watched
	}
	applied := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == f.Conventions.FieldManager }
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: labels.Set(f.ConstantLabels()).String()}
	return pages.Each(ctx, options, r.resource(namespace).List, func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			u := &page.Items[i]
			at := slices.IndexFunc(u.GetOwnerReferences(), isUpstream)
			if at < 0 || !slices.ContainsFunc(u.GetManagedFields(), applied) {
				continue
			}
			target, owner := apply.Target{GVR: r.gvr, Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetOwnerReferences()[at]
			switch {
			case !all:
				fmt.Fprintf(r.Out, "note: %s: owner reference to %s %s stays, so it is deleted with it: if its deletionPolicy "+
					"is Orphan, "+
					"remove the reference first\n", target, owner.Kind, owner.Name)
				continue
			case r.DryRun:
				fmt.Fprintf(r.Out, "%s: owner reference to %s %s would be removed\n", target, owner.Kind, owner.Name)
				continue
			}
			if _, err := r.client.Unmark(ctx, target, u, apply.Marks{OwnerUID: owner.UID}); err != nil {
				return err
			}
			fmt.Fprintf(r.Out, "%s: owner reference to %s %s removed\n", target, owner.Kind, owner.Name)
		}
		return nil
	})
}
