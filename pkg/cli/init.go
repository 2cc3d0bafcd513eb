package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

type initOptions struct {
	streams IO
	program string // what the command is called
	crd     string
	kind    string
	scope   choice
	from    []string
	holes   []string
	name    string
	domain  string
	dir     string
	force   bool
	crds    []string

	notes []string
}

func newInit(streams IO) *cobra.Command {
	o := &initOptions{streams: streams, scope: choice{words: []string{"Namespaced", "Cluster"}}}
	cmd := &cobra.Command{
		Use:   "init (--kind KIND.VERSION.GROUP | --crd FILE) --from FILE",
		Short: "Write a first config from manifests that are there",
		Long: `Write everything that a first config needs, from manifests as they would be
applied by hand: each becomes a downstream, and the values that differ from one
custom resource to the next become holes in its template.

  crd.yaml          the definition of a new kind, with fields for the holes. With
                    --crd it is that definition with what it lacks, if anything
  operator.yaml     the config
  conventions.yaml  the keys that mark objects in the cluster. One that is in the
                    directory, or in the one above, is used instead
  cr.yaml           a custom resource that gives the manifests back
  cases/NAME.yaml   a case for the test command: the sample, and what follows

A hole is [DOWNSTREAM:]PATH=FIELD: the value at PATH of the manifest is taken from
FIELD below the custom resource's spec from now on. A number or boolean becomes the
default of the field; text, maps and lists have to be given in each custom resource.
With --crd, a value that is called like a field of the kind and stands in one place
becomes a hole by itself.

The custom resource's name takes the place of its like in names, labels, selectors,
and where one manifest refers to another. What an API server has set is left out:
manifests may come from kubectl get -o yaml. Nothing is asked of a cluster, and no
file is overwritten without --force.`,
		Example: `  # A new kind, from a Deployment
  corollary init --kind WebApp.v1.platform.example.com --from deploy.yaml \
    --hole .spec.replicas=replicas \
    --hole '.spec.template.spec.containers[name=app].image=image'

  # Of several manifests, a hole names the one that it is in
  corollary init --kind WebApp.v1.platform.example.com --from deploy.yaml --from service.yaml \
    --hole deployment:.spec.replicas=replicas

  # A kind that is there
  corollary init --crd webapps.yaml --from deploy.yaml --dir webapp`,
		Args: noArguments("manifests are named with --from"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.program = cmd.Root().DisplayName()
			if cmd.Flags().Changed("scope") && o.crd != "" {
				return usagef("--scope and --crd exclude each other: the definition tells the scope")
			}
			return o.run(cmd.Context())
		},
	}
	o.bind(cmd)
	return cmd
}

func (o *initOptions) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.kind, "kind", "", "New kind to define: KIND.VERSION.GROUP, such as WebApp.v1.platform.example.com")
	bindChoice(cmd, &o.scope, "scope", "", "Scope of the new kind: Namespaced, or Cluster")
	flags.StringVar(&o.crd, "crd", "", "File with the CustomResourceDefinition of a kind that is there")
	flags.StringArrayVar(&o.from, "from", nil, "File with manifests, or - for standard input; may be repeated")
	flags.StringArrayVar(&o.holes, "hole", nil, "Value that the custom resource gives: [DOWNSTREAM:]PATH=FIELD; may be repeated")
	flags.StringVar(&o.name, "name", "", "Text that stands for the custom resource's name in the manifests (default: what their names begin with)")
	flags.StringVar(&o.domain, "domain", "", "Domain of the keys that mark objects in the cluster (default: asked for on a terminal, else the kind's group)")
	flags.StringVar(&o.dir, "dir", ".", "Directory to write to")
	flags.BoolVar(&o.force, "force", false, "Overwrite files that are there")
	bindCRDs(cmd, &o.crds)
	completeFiles(cmd, "crd", "yaml", "yml", "json")
	completeFiles(cmd, "from", "yaml", "yml", "json")
	_ = cmd.MarkFlagDirname("dir") // the only error is a flag that does not exist
	for _, flag := range []string{"kind", "hole", "name", "domain"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

func (o *initOptions) note(format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

func (o *initOptions) run(ctx context.Context) error {
	upstream, err := o.upstream()
	if err != nil {
		return err
	}
	seeds, err := o.seeds(upstream)
	if err != nil {
		return err
	}
	shared, err := findSharing(o.dir)
	if err != nil {
		return err
	}
	if err := shared.chooseDomain(o, upstream.kind.Group); err != nil {
		return err
	}
	for _, s := range seeds {
		s.dropMarks(shared)
	}
	made, err := o.sow(upstream, seeds)
	if err != nil {
		return err
	}
	made.operator.shared = shared
	files, err := o.write(made)
	if err != nil {
		return err
	}
	if err := o.check(made); err != nil {
		return err
	}
	if err := o.expect(ctx, made); err != nil {
		return err
	}
	o.tell(made, files)
	return nil
}

func (o *initOptions) upstream() (*newUpstream, error) {
	switch {
	case len(o.from) == 0:
		return nil, usagef("no manifest is named: add --from FILE")
	case o.kind == "" && o.crd == "":
		return nil, usagef("no kind is named: add --kind KIND.VERSION.GROUP for a new one, or --crd FILE")
	case o.kind != "" && o.crd != "":
		return nil, usagef("--kind and --crd exclude each other: the definition tells the kind")
	case o.crd != "":
		return upstreamOfFile(o.crd)
	}
	return upstreamOfKind(o.kind, o.scope.value == "Namespaced")
}

// seeds reads the manifests, each with a name of its own and in the namespace that it will be in.
func (o *initOptions) seeds(upstream *newUpstream) ([]*seed, error) {
	seeds, err := readSeeds(o.from, o.streams.In)
	if err != nil {
		return nil, err
	}
	files := o.crds
	if o.crd != "" {
		files = append(files, o.crd)
	}
	source, err := kinds.Offline(files...)
	if err != nil {
		return nil, err
	}
	nameDownstreams(seeds, upstream.kind.Kind)
	for _, s := range seeds {
		if s.kind.GroupKind() == upstream.kind.GroupKind() {
			return nil, fmt.Errorf("%s: it is of kind %s itself: name manifests of what is to follow from that", s.where, s.kind.Kind)
		}
		s.namespaced = true
		if kind, err := source.Kind(s.kind); err == nil {
			s.namespaced = kind.Namespaced
		} else {
			o.note("%s is taken for namespaced: %v", s.kind.Kind, err)
		}
		switch {
		case !upstream.namespaced && s.namespaced && s.namespace == "":
			return nil, fmt.Errorf("%s: it names no namespace, and %s is cluster-scoped: add metadata.namespace", s.where, upstream.kind.Kind)
		case !upstream.namespaced && s.namespaced:
			s.setNamespace()
		case s.namespaced && s.namespace != "" && s.namespace != "default":
			o.note("downstream %s goes to the namespace of its %s, not to %s", s.downstream, upstream.kind.Kind, s.namespace)
		}
	}
	return seeds, distinct(seeds, upstream)
}

// distinct refuses manifests that would be one object.
func distinct(seeds []*seed, upstream *newUpstream) error {
	first := map[string]*seed{}
	for _, s := range seeds {
		namespace := ""
		if s.namespaced && !upstream.namespaced {
			namespace = s.namespace
		}
		id := strings.Join([]string{s.kind.GroupKind().String(), namespace, s.name}, "/")
		if other, twice := first[id]; twice {
			return fmt.Errorf("%s: %s %s is in %s too, and of one %s follows one of them: rename it, or make the kind cluster-scoped for objects in several namespaces",
				s.where, s.kind.Kind, s.name, other.where, upstream.kind.Kind)
		}
		first[id] = s
	}
	return nil
}

// harvest is what init has made and is to write.
type harvest struct {
	operator *newOperator
	holes    []*hole
	fields   *branch
	name     string // the sample's
	sample   map[string]any
}

// sow makes templates of the manifests, and holds them to what they were made of.
func (o *initOptions) sow(upstream *newUpstream, seeds []*seed) (*harvest, error) {
	made := &harvest{operator: &newOperator{name: strings.ToLower(upstream.kind.Kind), upstream: upstream, seeds: seeds}}
	for _, text := range o.holes {
		h, err := findHole(seeds, text)
		if err != nil {
			return nil, err
		}
		made.holes = append(made.holes, h)
	}
	matched, notes := upstream.match(seeds, made.holes)
	made.holes, o.notes = append(made.holes, matched...), append(o.notes, notes...)
	if err := agree(made.holes); err != nil {
		return nil, err
	}
	var err error
	if made.fields, err = grow(made.holes); err != nil {
		return nil, err
	}
	if made.name = o.name; made.name == "" {
		made.name = commonName(seeds)
	}
	spec := made.fields.sample().(map[string]any)
	if upstream.known != nil {
		if told := sampleOf(schemaAt(upstream.known.Schema, fieldpath.New("spec")), spec, ".spec"); len(told) > 0 {
			o.note("in the sample, %s are made up: the definition requires them", strings.Join(told, ", "))
		}
	}
	apiVersion, kind := upstream.kind.ToAPIVersionAndKind()
	made.sample = map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": made.name}, "spec": spec}
	if err := o.templates(made); err != nil {
		return nil, err
	}
	if len(made.holes) == 0 {
		o.note("nothing but the name differs from one %s to the next: make holes of what should, such as %s", upstream.kind.Kind, suggest(seeds))
	}
	o.notes = append(o.notes, advise(seeds, upstream.kind.Kind)...)
	return made, nil
}

// templates puts expressions into the manifests.
func (o *initOptions) templates(made *harvest) error {
	op := made.operator
	var texts []string
	for _, s := range op.seeds {
		text, err := yamlText(s.root)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	m := newMarks(texts)
	for _, h := range made.holes {
		if err := h.fill(m.add(op.upstream.expression(h))); err != nil {
			return err
		}
	}
	bindNames(op.seeds, made.name, m.add(".metadata.name"))
	for i, s := range op.seeds {
		var err error
		if texts[i], err = yamlText(s.root); err != nil {
			return err
		}
	}
	op.around = choose(texts)
	for i, s := range op.seeds {
		text := m.template(texts[i], op.around)
		if err := s.givesBack(text, op.around, made.sample); err != nil {
			return err
		}
		op.templates = append(op.templates, text)
	}
	return nil
}

// at is the path of a file that is written, as the next commands name it.
func (o *initOptions) at(file string) string { return filepath.Join(o.dir, filepath.FromSlash(file)) }
