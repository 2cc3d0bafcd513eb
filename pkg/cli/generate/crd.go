package generate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type definitions struct {
	maker
}

func newCRD(streams command.IO) *cobra.Command {
	o := &definitions{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
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
	})
	cmd.Args = command.NoArguments("configs are named with -c")
	o.bindOutput(cmd)
	return cmd
}

func (o *definitions) run() error {
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
	var documents []map[string]any
	var out bytes.Buffer
	for _, d := range definitions {
		command.WriteNotes(o.streams, d.Notes)
		documents = append(documents, d.Object.Object)
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		text, err := yamltext.Of(d.Object.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "# %s of %s, as described by the config of operator %s: made by corollary generate crd.\n%s",
			d.Kind.Kind, d.Kind.GroupVersion(), d.File.Metadata.Name, text)
	}
	if o.output.Value != command.YAML {
		return o.output.Documents(o.streams.Out, documents)
	}
	return o.write("the definition", out.Bytes())
}
