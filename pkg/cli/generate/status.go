package generate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type statuses struct {
	maker
	columns bool
}

func newStatus(streams command.IO) *cobra.Command {
	o := &statuses{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
		Use:   "crd-status -c CONFIG",
		Short: "Print what a CustomResourceDefinition needs to store the status",
		Long: `Print the schema of everything that configs write into the status of a kind, and
the status subresource, to be merged into an entry of spec.versions of the kind's
CustomResourceDefinition. Configs that watch one kind are printed as one.

Conditions and the list of downstreams are keyed lists, so that several writers
can keep items in them. status.fields have the type of their expressions: from the
schemas given with --crds, else from the expression itself, such as an integer for
….orValue(0). If the type is not known, any value can be stored.

With the CustomResourceDefinition itself among --crds, standard error lists what it
lacks.`,
		Example: `  corollary generate crd-status -c app.yaml

  # With columns for kubectl get
  corollary generate crd-status -c app.yaml --printer-columns

  # Typed by definitions, and compared with the one that is there
  corollary generate crd-status -c app.yaml --crds crds/`,
	})
	cmd.Flags().BoolVar(&o.columns, "printer-columns", false,
		"Print columns for kubectl get too: Ready, its reason, and the age")
	return cmd
}

func (o *statuses) run() error {
	source, err := kinds.Offline(o.crds...)
	if err != nil {
		return err
	}
	files, problems, err := o.configs.Load(o.streams)
	if err != nil {
		return err
	}
	var list []compile.Compiled
	for _, f := range files {
		upstream := schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind)
		made, more, e := compile.All([]*load.File{f}, problems, compile.Options{Kinds: generate.OpenStatus(source, upstream)})
		list, problems, err = append(list, made...), more, errors.Join(err, e)
	}
	if err := command.Refuse(o.streams, problems, err); err != nil {
		return err
	}
	return o.print(command.PipelinesOf(list), source)
}

func (o *statuses) print(pipelines []*compile.Pipeline, source kinds.Source) error {
	needs, silent, err := generate.CRDStatusOf(pipelines)
	if err != nil {
		return err
	}
	for _, operator := range silent {
		fmt.Fprintf(o.streams.Err, "note: operator %s writes no status: status.enabled is false\n", operator)
	}
	var out bytes.Buffer
	for i, n := range needs {
		if i > 0 {
			out.WriteString("---\n")
		}
		text, err := yamltext.Of(n.Version(o.columns))
		if err != nil {
			return err
		}
		out.WriteString(generate.VersionHead(n.Kind, n.Operators) + text)
		if kind, err := source.Kind(n.Kind); err == nil {
			fmt.Fprintf(o.streams.Err, "note: %s\n", n.Compare(kind))
		}
	}
	return o.write("the schema", out.Bytes())
}
