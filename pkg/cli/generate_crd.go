package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type generateCRDOptions struct {
	streams command.IO
	configs command.Configs
	crds    []string
}

func newGenerateCRD(streams command.IO) *cobra.Command {
	o := &generateCRDOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "crd -c CONFIG",
		Short: "Print the CustomResourceDefinition of a kind that a config describes",
		Long: `Print the CustomResourceDefinition of each kind that a config describes by
watch.schema: the fields of the spec; the status that the operators write, with the
subresource; columns for kubectl get; and the rules under validate, so that the API
server enforces them, too. Configs that watch one kind are printed as one.

A rule is left out if it reads what a definition cannot see (inputs, the status,
metadata other than the name), if it could cost more than the API server allows, or if
the operator watches only some objects of the kind. Standard error says so; the operator
checks it in any case.

"corollary run --install-crds" applies the same definitions.`,
		Example: `  corollary generate crd -c app.yaml | kubectl apply --server-side -f -

  # For a repository
  corollary generate crd -c configs/ > crds.yaml`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.configs.Bind(cmd)
	command.BindCRDs(cmd, &o.crds)
	return cmd
}

func (o *generateCRDOptions) run() error {
	list, err := o.configs.CompileOffline(o.streams, o.crds)
	if err != nil {
		return err
	}
	definitions, err := generate.Definitions(list)
	if err != nil {
		return err
	}
	if len(definitions) == 0 {
		return errors.New("there is nothing to print: no config has watch.schema")
	}
	var out bytes.Buffer
	for i, d := range definitions {
		if i > 0 {
			out.WriteString("---\n")
		}
		text, err := yamltext.Of(d.Object.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(
			&out,
			"# %s of %s, as described by the config of operator %s: made by corollary generate crd.\n%s",
			d.Kind.Kind,
			d.Kind.GroupVersion(),
			d.File.Metadata.Name,
			text,
		)
		command.WriteNotes(o.streams, d.Notes)
	}
	if _, err := o.streams.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the definition: %w", err)
	}
	return nil
}
