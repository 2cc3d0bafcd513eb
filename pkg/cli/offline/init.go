package offline

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/scaffold"
)

type initOptions struct {
	streams command.IO
	program string // what the command is called
	crd     string
	schema  string
	kind    string
	scope   command.Choice
	from    []string
	holes   []string
	name    string
	domain  string
	dir     string
	force   bool
	crds    []string

	conventions *scaffold.Conventions
	notes       []string
}

func newInit(streams command.IO) *cobra.Command {
	o := &initOptions{streams: streams, scope: command.Choice{Words: []string{"Namespaced", "Cluster"}}}
	cmd := &cobra.Command{
		Use:   "init (--kind KIND.VERSION.GROUP | --crd FILE) --from FILE",
		Short: "Write a first config from existing manifests",
		Long: `Write everything that a first config needs, from manifests that you could apply
yourself. Each becomes a downstream, and the values that differ between custom
resources become holes in its template.

  crd.yaml          the definition of a new kind, with fields for the holes. With
                    --crd: that definition, and what it lacks. With --schema: none
  operator.yaml     the config; with --schema, it describes the kind
  conventions.yaml  the keys that mark objects in the cluster. If the directory or the
                    one above has this file already, that one is used
  cr.yaml           a custom resource for which the templates render the manifests
  cases/NAME.yaml   a case for the test command: that custom resource and its result

A hole is [DOWNSTREAM:]PATH=FIELD: the value at PATH of the manifest is read from
FIELD below the custom resource's spec. A number or boolean becomes the default of
the field; text, maps and lists have to be set in each custom resource. With --crd
or --schema, a value becomes a hole without --hole if its key is the name of a field of the kind
and it occurs in one place only.

The custom resource's name replaces the common name of the manifests in their names,
labels, selectors and references to each other. Fields that an API server sets are
left out, so manifests may come from kubectl get -o yaml. No cluster is read, and no
file is overwritten without --force.`,
		Example: `  # A new kind, from a Deployment
  corollary init --kind WebApp.v1.platform.example.com --from deploy.yaml \
    --hole .spec.replicas=replicas \
    --hole '.spec.template.spec.containers[name=app].image=image'

  # Of several manifests, a hole names the one that it is in
  corollary init --kind WebApp.v1.platform.example.com --from deploy.yaml --from service.yaml \
    --hole deployment:.spec.replicas=replicas

  # A new kind that is described in the config: the file has the content of watch.schema
  corollary init --kind WebApp.v1.platform.example.com --schema schema.yaml --from deploy.yaml

  # An existing kind
  corollary init --crd webapps.yaml --from deploy.yaml --dir webapp`,
		Args: command.NoArguments("manifests are named with --from"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.program = cmd.Root().DisplayName()
			switch {
			case cmd.Flags().Changed("scope") && o.crd != "":
				return command.Usagef("--scope and --crd cannot be combined: the definition has the scope")
			case cmd.Flags().Changed("scope") && o.schema != "":
				return command.Usagef("--scope and --schema cannot be combined: write scope: into the file")
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
	command.BindChoice(cmd, &o.scope, "scope", "", "Scope of the new kind: Namespaced, or Cluster")
	flags.StringVar(&o.crd, "crd", "", "File with the CustomResourceDefinition of an existing kind")
	flags.StringVar(&o.schema, "schema", "",
		"File with the content of watch.schema: spec, types, scope, plural, shortNames")
	command.BindFiles(cmd, &o.from, "from", "", "File with manifests, or - for standard input; may be repeated",
		"yaml", "yml", "json")
	flags.StringArrayVar(&o.holes, "hole", nil,
		"Value that comes from the custom resource: [DOWNSTREAM:]PATH=FIELD; may be repeated")
	flags.StringVar(&o.name, "name", "",
		"Text in the manifests that the name of the custom resource replaces (default: what their names begin with)")
	flags.StringVar(&o.domain, "domain", "",
		"Domain of the keys that mark objects in the cluster (default: asked for on a terminal, else the kind's group)")
	flags.StringVar(&o.dir, "dir", ".", "Directory to write to")
	flags.BoolVar(&o.force, "force", false, "Overwrite existing files")
	command.BindCRDs(cmd, &o.crds)
	command.CompleteFiles(cmd, "crd", "yaml", "yml", "json")
	command.CompleteFiles(cmd, "schema", "yaml", "yml")
	_ = cmd.MarkFlagDirname("dir") // the only error is a flag that does not exist
	for _, flag := range []string{"kind", "hole", "name", "domain"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

func (o *initOptions) run(ctx context.Context) error {
	draft, err := o.draft()
	var request *scaffold.RequestError
	if errors.As(err, &request) {
		return command.Usagef("%s", request)
	}
	if err != nil {
		return err
	}
	files, err := o.write(draft)
	if err != nil {
		return err
	}
	if err := o.check(draft); err != nil {
		return err
	}
	if err := o.expect(ctx, draft); err != nil {
		return err
	}
	o.printSummary(draft, files)
	return nil
}

func (o *initOptions) draft() (*scaffold.Draft, error) {
	upstream, err := o.upstream()
	if err != nil {
		return nil, err
	}
	known := slices.Clone(o.crds)
	if o.crd != "" {
		known = append(known, o.crd)
	}
	source, err := kinds.Offline(known...)
	if err != nil {
		return nil, err
	}
	manifests, err := upstream.Read(o.from, o.streams.In, source)
	if err != nil {
		return nil, err
	}
	if o.conventions, err = scaffold.FindConventions(o.dir); err != nil {
		return nil, err
	}
	if err := o.chooseDomain(upstream.Group()); err != nil {
		return nil, err
	}
	return manifests.Draft(scaffold.Options{Conventions: o.conventions, Holes: o.holes, Name: o.name})
}

func (o *initOptions) upstream() (*scaffold.Upstream, error) {
	switch {
	case len(o.from) == 0:
		return nil, command.Usagef("no manifest is named: add --from FILE")
	case o.kind == "" && o.crd == "":
		return nil, command.Usagef("no kind is named: add --kind KIND.VERSION.GROUP for a new one, or --crd FILE")
	case o.kind != "" && o.crd != "":
		return nil, command.Usagef("--kind and --crd cannot be combined: the definition has the kind")
	case o.schema != "" && o.crd != "":
		return nil, command.Usagef("--schema and --crd cannot be combined: the definition has the schema")
	case o.crd != "":
		return scaffold.Definition(o.crd)
	case o.schema != "":
		return scaffold.DescribedKind(o.kind, o.schema)
	}
	return scaffold.NewKind(o.kind, o.scope.Value == "Namespaced")
}
