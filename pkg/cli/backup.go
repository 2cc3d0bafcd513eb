package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/status"
)

type backupOptions struct {
	streams              command.IO
	configs              command.Configs
	connection           command.Connection
	crds, recipients     []string
	output               string
	downstreams, secrets bool
}

func newBackup(streams command.IO) *cobra.Command {
	o := &backupOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "backup {-c CONFIG | --crd NAME} -o {DIRECTORY | FILE.tar.zst}",
		Short: "Write custom resources, their status and definitions to a backup",
		Long: `Write the upstreams of configs, or every object of custom kinds, to a directory or a
.tar.zst file, with their status, managedFields and CustomResourceDefinitions; with
--downstreams also their downstreams. "corollary restore" restores them.

The objects of each kind are as they were at one resourceVersion. Files of objects that
did not change have the same bytes in the next backup, so that git or restic can keep a
directory; if nothing changed, the output stays as it is. Objects that are being
deleted are left out. The output file or directory appears once it is complete.

Secrets are left out unless --secrets is given, and are then encrypted with age for the
recipients. The rights to list the kinds and to get customresourcedefinitions are
needed.`,
		Example: `  # The upstreams of a config and all that follows from them
  corollary backup -c app.yaml --downstreams -o app.tar.zst

  # Custom kinds, to a directory that git keeps
  corollary backup --crd crontabs.example.com --crd widgets.example.com -o backup

  # Secrets too
  corollary backup -c app.yaml --downstreams --secrets --age-recipient age1… -o app.tar.zst`,
		Args: command.NoArguments("configs are named with -c, custom kinds with --crd"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			ctx, stop := command.UntilSignal(cmd.Context())
			defer stop()
			return o.run(ctx)
		},
	}
	o.configs.Bind(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.crds, "crd", nil,
		"CustomResourceDefinition whose objects are written, such as crontabs.example.com; may be repeated")
	flags.StringVarP(&o.output, "output", "o", "", "Directory or FILE.tar.zst to write (required); an earlier backup there is replaced")
	flags.BoolVar(&o.downstreams, "downstreams", false, "Write the downstreams of the configs too")
	flags.BoolVar(&o.secrets, "secrets", false, "Write Secrets among the downstreams too, encrypted")
	flags.StringArrayVar(&o.recipients, "age-recipient", nil, "age public key for which Secrets are encrypted; may be repeated")
	o.connection.Bind(
		cmd,
		"Write the objects of this namespace only, and their downstreams; by default of all namespaces that the config watches",
	)
	return cmd
}

func (o *backupOptions) check() error {
	switch {
	case len(o.configs.Files) == 0 && len(o.crds) == 0:
		return command.Usagef("nothing to write is given: add -c FILE, or --crd NAME")
	case o.output == "":
		return command.Usagef("required flag --output is not set: name a directory or a FILE.tar.zst")
	case o.downstreams && len(o.configs.Files) == 0:
		return command.Usagef("--downstreams needs -c FILE")
	case o.secrets && len(o.recipients) == 0:
		return command.Usagef("--secrets needs --age-recipient: Secrets are only written encrypted; age-keygen makes a key")
	case !o.secrets && len(o.recipients) > 0:
		return command.Usagef("--age-recipient has no effect without --secrets")
	}
	for _, name := range o.crds {
		if !strings.Contains(name, ".") {
			return command.Usagef("--crd is %q: write the name of a CustomResourceDefinition, such as crontabs.example.com", name)
		}
	}
	return nil
}

func (o *backupOptions) run(ctx context.Context) error {
	b := &backup.Backup{}
	if o.secrets {
		recipients, err := age.ParseRecipients(strings.NewReader(strings.Join(o.recipients, "\n")))
		if err != nil {
			return command.Usagef("--age-recipient: %v", err)
		}
		b.Recipients = recipients
	}
	var files []*load.File
	if len(o.configs.Files) > 0 {
		loaded, problems, err := o.configs.Load(o.streams)
		if err := command.Refuse(o.streams, problems, err); err != nil {
			return err
		}
		files = loaded
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	if b.Client, err = dynamic.NewForConfig(cfg); err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	return o.write(ctx, cfg, b, files)
}

func (o *backupOptions) write(ctx context.Context, cfg *rest.Config, b *backup.Backup, files []*load.File) error {
	selected, err := o.selectObjects(ctx, cfg, b, files)
	if err != nil {
		return err
	}
	m, written, err := b.Run(ctx, o.output)
	if err != nil {
		return err
	}
	if err := o.noteDropped(ctx, b); err != nil {
		return err
	}
	if selected.secrets && !o.secrets {
		fmt.Fprintf(o.streams.Err, "note: Secrets are left out%s: add --secrets and --age-recipient\n", lostValues(files))
	}
	for _, name := range b.Unread {
		fmt.Fprintf(o.streams.Err, "note: %s: left out, though a status records such objects: they cannot be listed\n", name)
	}
	for _, k := range m.Kinds {
		fmt.Fprintf(o.streams.Out, "%s: %s at resourceVersion %s\n", k.Name(), command.Count(k.Objects, "object"), k.ResourceVersion)
		if k.Terminating > 0 {
			fmt.Fprintf(o.streams.Err, "note: %s: %s left out, being deleted\n", k.Name(), command.Count(k.Terminating, "object"))
		}
	}
	if written {
		fmt.Fprintf(o.streams.Out, "written to %s\n", o.output)
	} else {
		fmt.Fprintf(o.streams.Out, "%s has the same already\n", o.output)
	}
	return nil
}

// noteDropped says which fields are not in the backup, since the version that it was read in lacks them.
func (o *backupOptions) noteDropped(ctx context.Context, b *backup.Backup) error {
	for _, k := range b.Kinds {
		kind := kinds.Kind{GVK: k.GVK, GVR: k.GVK.GroupVersion().WithResource(k.Resource)}
		lost, err := droppedBy(kind, nil, definitionsOf(ctx, b.Client))
		if err != nil {
			return err
		}
		if lost != "" {
			fmt.Fprintf(o.streams.Err, "note: %s: version %s lacks what objects have in another one, and no webhook converts: left out are %s\n",
				kind.GVR.GroupResource(), k.GVK.Version, lost)
		}
	}
	return nil
}

// selectObjects says which kinds are listed, owners first, and which of their objects are wanted.
func (o *backupOptions) selectObjects(ctx context.Context, cfg *rest.Config, b *backup.Backup, files []*load.File) (*selecting, error) {
	cluster, err := kinds.Live(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	s := &selecting{options: o, source: cluster, client: b.Client, backup: b}
	var errs []error
	for _, name := range o.crds {
		errs = append(errs, s.crd(ctx, name))
	}
	if err := errors.Join(append(errs, s.operators(ctx, files))...); err != nil {
		return nil, err
	}
	switch {
	case o.downstreams:
		b.Recorded = func(u *unstructured.Unstructured) []backup.Selection { return s.recorded(files, u) }
	case o.secrets && !s.secrets:
		return nil, command.Usagef("--secrets has no effect: no kind that is written is a Secret; --downstreams adds those that follow from upstreams")
	}
	return s, nil
}

// operators chooses the upstreams of all configs, and then what follows from them: an object is written if an owner was written before.
func (s *selecting) operators(ctx context.Context, files []*load.File) error {
	var errs []error
	sorted := byOwnership(files)
	for _, f := range sorted {
		errs = append(errs, s.upstreams(ctx, f))
	}
	for _, f := range sorted {
		if s.options.downstreams {
			errs = append(errs, s.downstreams(f))
		}
	}
	return errors.Join(errs...)
}

// lostValues says which random values a backup without Secrets does not have.
func lostValues(files []*load.File) string {
	var names []string
	for _, f := range files {
		for _, d := range f.Downstreams {
			if len(d.Generated) > 0 {
				names = append(names, f.Metadata.Name+"/"+d.Name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", with values that a restored operator would make anew (generated: %s)", strings.Join(names, ", "))
}

// byOwnership sorts configs so that one whose downstreams are another's upstreams comes before it, unless they form a cycle.
func byOwnership(files []*load.File) []*load.File {
	left, sorted := slices.Clone(files), []*load.File(nil)
	makes := func(f *load.File, w config.Watch) bool {
		return slices.ContainsFunc(f.Downstreams, func(d config.Downstream) bool {
			return schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind() == schema.FromAPIVersionAndKind(w.APIVersion, w.Kind).GroupKind()
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
	options *backupOptions
	source  kinds.Source
	client  dynamic.Interface
	backup  *backup.Backup
	secrets bool // there are some, which --secrets writes
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
	return backup.Selection{GVK: kind.GVK, Resource: kind.GVR.Resource, Namespaced: kind.Namespaced, HasStatus: kind.HasStatus,
		Custom: kind.IsCustom(), Namespaces: namespaces, Choices: []backup.Choice{choice}}
}

// mayWrite is false for Secrets without --secrets, and remembers that there are some.
func (s *selecting) mayWrite(kind *kinds.Kind) bool {
	isSecret := kind.GVR.GroupResource() == schema.GroupResource{Resource: "secrets"}
	s.secrets = s.secrets || isSecret
	return !isSecret || s.options.secrets
}

// crd chooses all objects of a custom kind, in the version that is stored, or, where that is not served, in the first that is.
func (s *selecting) crd(ctx context.Context, name string) error {
	crd, err := kinds.ReadDefinition(ctx, s.client, name)
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
	kind, err := s.source.Kind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind})
	if err != nil {
		return err
	}
	var namespaces []string
	if ns := s.namespace(); ns != "" && kind.Namespaced {
		namespaces = []string{ns}
	}
	s.add(kind, namespaces, backup.Choice{Namespaces: setOf(namespaces)})
	return nil
}

func (s *selecting) namespace() string { return s.options.connection.Overrides.Context.Namespace }

// upstreams chooses what a config watches.
func (s *selecting) upstreams(ctx context.Context, f *load.File) error {
	if f.Source != nil { // the database has its own backups; what follows from its rows is written with --downstreams
		return nil
	}
	kind, err := s.source.Kind(schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind))
	if err != nil {
		return fmt.Errorf("operator %s: %w", f.Metadata.Name, err)
	}
	s.backup.Operators = append(s.backup.Operators, operatorOf(f, kind))
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
	if ns := s.namespace(); ns != "" && kind.Namespaced {
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
func (s *selecting) selected(ctx context.Context, selector *metav1.LabelSelector, allowed map[string]bool) (map[string]bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	list, err := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
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
		kind, err := s.source.Kind(schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
		if err != nil {
			errs = append(errs, fmt.Errorf("operator %s: downstream %s: %w", f.Metadata.Name, d.Name, err))
			continue
		}
		choice := backup.Choice{Owned: true} // by its owner alone: the labels may be those of another config, or they were removed
		if f.Source != nil {
			choice.Selector, choice.Rows, choice.Marks = labels.SelectorFromSet(constantLabels(f)), f.Metadata.Name, ownerAnnotations(f)
		}
		s.add(kind, s.targets(f, &d), choice)
	}
	return errors.Join(errs...)
}

// recorded chooses the kinds that only the status of an upstream names: of downstreams that a config no longer has. Those that are not
// served have no objects.
func (s *selecting) recorded(files []*load.File, u *unstructured.Unstructured) []backup.Selection {
	var list []backup.Selection
	for _, f := range files {
		if f.Source != nil || schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind).GroupKind() != u.GroupVersionKind().GroupKind() {
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
			kind, err := s.source.Kind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
			if err == nil && kind.Namespaced == (r.Namespace != "") && s.mayWrite(kind) { // else another client has written the status
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
	case s.namespace() != "":
		return []string{s.namespace()}
	}
	return f.Watch.Namespaces
}

// operatorOf is what a restore needs to know of a config.
func operatorOf(f *load.File, kind *kinds.Kind) backup.Operator {
	o := backup.Operator{Name: f.Metadata.Name, Upstream: kind.GVR.GroupResource().String()}
	if f.Conventions.Pause != nil {
		o.Pause = f.Conventions.Pause.Annotation
	}
	o.Owners, o.FieldManagers, o.Finalizers = ownerAnnotations(f), f.Conventions.FieldManagers(), f.Conventions.Finalizers()
	o.Hashes = []backup.Key{{Annotation: f.Conventions.Hash.Annotation, Label: f.Conventions.Hash.Label}}
	if p := f.Conventions.Previous; p != nil && p.Hash != nil {
		o.Hashes = append(o.Hashes, backup.Key{Annotation: p.Hash.Annotation, Label: p.Hash.Label})
	}
	o.Labels = constantLabels(f)
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
