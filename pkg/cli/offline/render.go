package offline

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

type renderOptions struct {
	streams   command.IO
	configs   command.Configs
	files     []string
	inputs    []string
	crds      []string
	namespace string
	output    command.Output
}

func newRender(streams command.IO) *cobra.Command {
	o := &renderOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "render -c CONFIG -f FILE",
		Short: "Print what would be applied for custom resources, without a cluster",
		Long: `Print the downstreams of custom resources as they would be applied to an empty
cluster, including conventions, owner marks and hash. The same input always gives
the same bytes.

Rules are evaluated as by run, and a custom resource that breaks one is an error. If
anything is wrong, only errors are printed, so that the output can be piped.

What only an API server knows is left out or replaced:

  - a custom resource without metadata.uid is given ` + offline.PlaceholderUID + `,
    which the owner marks then contain;
  - one without metadata.namespace is in --namespace;
  - with --crds the defaults of its schema are filled in, as the API server does
    it. Nothing else of the schema is checked;
  - watch.namespaceSelector is assumed to select every namespace;
  - inputs come from the files of --inputs; a downstream whose input is missing
    there waits, as it would in a cluster.`,
		Example: `  corollary render -c app.yaml -f web.yaml

  # A kind with defaults in its schema, or a cluster-scoped one
  corollary render -c app.yaml --crds crds/ -f web.yaml

  # What a change of the custom resource changes
  corollary render -c app.yaml -f web.yaml | kubectl diff --server-side -f -

  # With the ConfigMap that it reads
  corollary render -c app.yaml -f web.yaml --inputs settings.yaml

  # From standard input, as JSON
  kubectl get appoperators -o yaml | corollary render -c app.yaml -f - -o json`,
		Args: command.NoArguments("custom resources are named with -f, configs with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.configs.Bind(cmd)
	command.BindUpstreams(cmd, &o.files)
	command.BindFiles(cmd, &o.inputs, "inputs", "", "File with the input objects, or a directory of them; may be repeated",
		"yaml", "yml", "json")
	command.BindCRDs(cmd, &o.crds)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", `Namespace of custom resources that name none (default "default")`)
	o.output.Bind(cmd, "Output format: yaml, kyaml, or json (an object for one downstream, a List for several)",
		command.YAML, command.JSON, command.KYAML)
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	list, err := o.compile()
	if err != nil {
		return err
	}
	upstreams, errs := offline.Read(o.files, o.streams.In)
	inputs, more := offline.ReadGiven(o.inputs, o.streams.In, o.namespace)
	r := &offline.Rendering{Configs: list, Namespace: o.namespace, Given: inputs, Errs: append(errs, more...)}
	for _, u := range upstreams {
		r.Add(ctx, u)
	}
	command.WriteNotes(o.streams, r.Notes)
	for _, err := range r.Errs {
		fmt.Fprintln(o.streams.Err, err)
	}
	if len(r.Errs) > 0 {
		return fmt.Errorf("nothing is printed: %s", command.Count(len(r.Errs), "error"))
	}
	return o.output.Documents(o.streams.Out, r.Documents)
}

// compile loads and compiles the configs with what files tell of kinds.
func (o *renderOptions) compile() ([]compile.Compiled, error) {
	if len(o.files) == 0 {
		return nil, command.Usagef("no custom resource is named: add -f FILE, -f DIRECTORY or -f -")
	}
	if o.configs.ReadsStdin() && slices.Contains(o.files, "-") {
		return nil, command.Usagef("-c - and -f - cannot both read standard input: name a file for one of them")
	}
	return o.configs.CompileOffline(o.streams, o.crds)
}
