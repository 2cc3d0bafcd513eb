// Package selection chooses what a backup lists: the upstreams of configs, what follows from them, and custom kinds.
package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Options say what is chosen.
type Options struct {
	// Client reads definitions and namespaces, Kinds knows the kinds of the cluster.
	Client dynamic.Interface
	Kinds  kinds.Source
	// CRDs are the names of definitions of which all objects are written.
	CRDs []string
	// Namespace is the only one of which objects are written; empty means all.
	Namespace string
	// Downstreams adds what follows from upstreams, Secrets those of it that are Secrets.
	Downstreams, Secrets bool
}

// Select adds to a backup which kinds are listed, owners first, which of their objects are wanted, and which operators
// they belong to. hasSecrets reports whether there are Secrets among them, written or not; while the backup runs, more
// kinds are found.
func Select(ctx context.Context, o Options, files []*load.File, b *backup.Backup) (hasSecrets func() bool, err error) {
	s := &selecting{Options: o, backup: b}
	var errs []error
	for _, name := range o.CRDs {
		errs = append(errs, s.crd(ctx, name))
	}
	if err := errors.Join(append(errs, s.operators(ctx, files))...); err != nil {
		return nil, err
	}
	if o.Downstreams {
		b.Recorded = func(u *unstructured.Unstructured) []backup.Selection { return s.recorded(files, u) }
	}
	return func() bool { return s.secrets }, nil
}

// operators chooses the upstreams of all configs, and then what follows from them: an object is written if an owner was
// written before.
func (s *selecting) operators(ctx context.Context, files []*load.File) error {
	var errs []error
	sorted := byOwnership(files)
	for _, f := range sorted {
		errs = append(errs, s.upstreams(ctx, f))
	}
	for _, f := range sorted {
		if s.Downstreams {
			errs = append(errs, s.downstreams(f))
		}
	}
	return errors.Join(errs...)
}

// Generated names the downstreams with random values, which a backup without Secrets does not have.
func Generated(files []*load.File) []string {
	var names []string
	for _, f := range files {
		for _, d := range f.Downstreams {
			if len(d.Generated) > 0 {
				names = append(names, f.Metadata.Name+"/"+d.Name)
			}
		}
	}
	return names
}

// byOwnership sorts configs so that one whose downstreams are another's upstreams comes before it, unless they form a
// cycle.
func byOwnership(files []*load.File) []*load.File {
	left, sorted := slices.Clone(files), []*load.File(nil)
	makes := func(f *load.File, w config.Watch) bool {
		return slices.ContainsFunc(f.Downstreams, func(d config.Downstream) bool {
			return schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).
				GroupKind() == schema.FromAPIVersionAndKind(w.APIVersion, w.Kind).GroupKind()
		})
	}
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(f *load.File) bool {
			return !slices.ContainsFunc(left, func(other *load.File) bool { return other != f && makes(other, f.Watch) })
		})
		i = max(i, 0)
		sorted, left = append(sorted, left[i]), slices.Delete(left, i, i+1)
	}
	return sorted
}

// selecting collects what a backup lists.
type selecting struct {
	Options
	backup  *backup.Backup
	secrets bool // there are some, which Options.Secrets writes
}

// add chooses objects of a kind. A kind that is chosen for several reasons is listed once, wherever any of them says.
func (s *selecting) add(kind *kinds.Kind, namespaces []string, choice backup.Choice) {
	if !s.mayWrite(kind) {
		return
	}
	for i := range s.backup.Kinds {
		known := &s.backup.Kinds[i]
		if known.GVK.GroupKind() != kind.GVK.GroupKind() {
			continue
		}
		known.Choices = append(known.Choices, choice)
		if len(namespaces) == 0 || len(known.Namespaces) == 0 {
			known.Namespaces = nil
		} else {
			known.Namespaces = slices.Compact(slices.Sorted(slices.Values(append(known.Namespaces, namespaces...))))
		}
		return
	}
	s.backup.Kinds = append(s.backup.Kinds, selection(kind, namespaces, choice))
}

func selection(kind *kinds.Kind, namespaces []string, choice backup.Choice) backup.Selection {
	return backup.Selection{GVK: kind.GVK, Resource: kind.GVR.Resource,
		Namespaced: kind.Namespaced, HasStatus: kind.HasStatus,
		Custom: kind.IsCustom(), Namespaces: namespaces, Choices: []backup.Choice{choice}}
}

// mayWrite is false for Secrets without Options.Secrets, and remembers that there are some.
func (s *selecting) mayWrite(kind *kinds.Kind) bool {
	isSecret := kind.GVR.GroupResource() == schema.GroupResource{Resource: "secrets"}
	s.secrets = s.secrets || isSecret
	return !isSecret || s.Secrets
}

// crd chooses all objects of a custom kind, in the version that is stored, or, where that is not served, in the first
// that is.
func (s *selecting) crd(ctx context.Context, name string) error {
	crd, err := kinds.ReadDefinition(ctx, s.Client, name)
	if err != nil {
		return err
	}
	version := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (v.Storage || version == "") {
			version = v.Name
		}
	}
	if version == "" {
		return fmt.Errorf("CustomResourceDefinition %s serves no version: serve one", name)
	}
	kind, err := s.Kinds.Kind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind})
	if err != nil {
		return err
	}
	var namespaces []string
	if ns := s.Namespace; ns != "" && kind.Namespaced {
		namespaces = []string{ns}
	}
	s.add(kind, namespaces, backup.Choice{Namespaces: setOf(namespaces)})
	return nil
}

// upstreams chooses what a config watches.
func (s *selecting) upstreams(ctx context.Context, f *load.File) error {
	if f.Source != nil { // the database has its own backups; what follows from its rows is written with --downstreams
		return nil
	}
	kind, err := s.Kinds.Kind(schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind))
	if err != nil {
		return fmt.Errorf("operator %s: %w", f.Metadata.Name, err)
	}
	s.backup.Operators = append(s.backup.Operators, OperatorOf(f, kind))
	choice := backup.Choice{}
	if f.Watch.LabelSelector != nil {
		if choice.Selector, err = metav1.LabelSelectorAsSelector(f.Watch.LabelSelector); err != nil {
			return fmt.Errorf("operator %s: watch.labelSelector: %w", f.Metadata.Name, err)
		}
	}
	var namespaces []string
	if kind.Namespaced {
		namespaces = f.Watch.Namespaces
	}
	if ns := s.Namespace; ns != "" && kind.Namespaced {
		if len(namespaces) > 0 && !slices.Contains(namespaces, ns) {
			return fmt.Errorf("operator %s: namespace %s is not among those that it watches", f.Metadata.Name, ns)
		}
		namespaces = []string{ns}
	}
	choice.Namespaces = setOf(namespaces)
	if f.Watch.NamespaceSelector != nil {
		if choice.Namespaces, err = s.selected(ctx, f.Watch.NamespaceSelector, choice.Namespaces); err != nil {
			return fmt.Errorf("operator %s: watch.namespaceSelector: %w", f.Metadata.Name, err)
		}
	}
	s.add(kind, namespaces, choice)
	return nil
}

// setOf is nil for no names.
func setOf(names []string) map[string]bool {
	var set map[string]bool
	for _, name := range names {
		if set == nil {
			set = map[string]bool{}
		}
		set[name] = true
	}
	return set
}

// selected are the namespaces with certain labels, of those that are allowed; nil allows all.
func (s *selecting) selected(
	ctx context.Context, selector *metav1.LabelSelector, allowed map[string]bool,
) (map[string]bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	list, err := s.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		List(ctx, metav1.ListOptions{LabelSelector: parsed.String()})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	set := map[string]bool{}
	for i := range list.Items {
		if name := list.Items[i].GetName(); allowed == nil || allowed[name] {
			set[name] = true
		}
	}
	return set, nil
}

// downstreams chooses what follows from the upstreams that are written.
func (s *selecting) downstreams(f *load.File) error {
	var errs []error
	for _, d := range f.Downstreams {
		if d.Ownership == config.OwnershipFields {
			continue // objects of others, which are given their fields again
		}
		kind, err := s.Kinds.Kind(schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
		if err != nil {
			errs = append(errs, fmt.Errorf("operator %s: downstream %s: %w", f.Metadata.Name, d.Name, err))
			continue
		}
		// by its owner alone: the labels may be those of another config, or they were removed
		choice := backup.Choice{Owned: true}
		if f.Source != nil {
			choice.Selector, choice.Rows, choice.Marks = labels.SelectorFromSet(f.ConstantLabels()),
				f.Metadata.Name, ownerAnnotations(f)
		}
		s.add(kind, s.targets(f, &d), choice)
	}
	return errors.Join(errs...)
}

// recorded chooses the kinds that only the status of an upstream names: of downstreams that a config no longer has.
// Those that are not served have no objects.
func (s *selecting) recorded(files []*load.File, u *unstructured.Unstructured) []backup.Selection {
	var list []backup.Selection
	for _, f := range files {
		if f.Source != nil || schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind).
			GroupKind() != u.GroupVersionKind().GroupKind() {
			continue
		}
		path, err := fieldpath.Parse(f.Status.Downstreams)
		if err != nil {
			continue // there is none
		}
		records, _ := fieldpath.Get(u.Object, path)
		for _, r := range status.RecordedFrom(records) {
			group := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
			known := func(d config.Downstream) bool {
				return d.Name == r.Name && schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind() == group
			}
			if slices.ContainsFunc(f.Downstreams, known) {
				continue
			}
			kind, err := s.Kinds.Kind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
			// else another client has written the status
			if err == nil && kind.Namespaced == (r.Namespace != "") && s.mayWrite(kind) {
				var namespaces []string
				if kind.Namespaced {
					namespaces = []string{r.Namespace}
				}
				list = append(list, selection(kind, namespaces, backup.Choice{Owned: true}))
			}
		}
	}
	return list
}

// targets are the namespaces in which downstreams can be; none: any.
func (s *selecting) targets(f *load.File, d *config.Downstream) []string {
	switch from := d.TargetNamespaces; {
	case from.From == config.NamespacesList:
		return from.Names
	case from.From == config.NamespacesAny:
		return nil
	case s.Namespace != "":
		return []string{s.Namespace}
	}
	return f.Watch.Namespaces
}

// OperatorOf is what a restore needs to know of a config.
func OperatorOf(f *load.File, kind *kinds.Kind) archive.Operator {
	o := archive.Operator{Name: f.Metadata.Name, Upstream: kind.GVR.GroupResource().String()}
	if f.Conventions.Pause != nil {
		o.Pause = f.Conventions.Pause.Annotation
	}
	o.Owners, o.FieldManagers, o.Finalizers = ownerAnnotations(f),
		f.Conventions.FieldManagers(), f.Conventions.Finalizers()
	o.Hashes = []archive.Key{{Annotation: f.Conventions.Hash.Annotation, Label: f.Conventions.Hash.Label}}
	if p := f.Conventions.Previous; p != nil && p.Hash != nil {
		o.Hashes = append(o.Hashes, archive.Key{Annotation: p.Hash.Annotation, Label: p.Hash.Label})
	}
	o.Labels = f.ConstantLabels()
	return o
}

// ownerAnnotations are the annotations that may name the owner of a downstream.
func ownerAnnotations(f *load.File) []string {
	list := []string{f.Conventions.Owner.Annotation}
	if p := f.Conventions.Previous; p != nil && p.Owner != nil {
		list = append(list, p.Owner.Annotation)
	}
	return slices.DeleteFunc(list, func(key string) bool { return key == "" })
}
