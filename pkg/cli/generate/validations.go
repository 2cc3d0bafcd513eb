package generate

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

type validations struct {
	maker
}

func newValidations(streams command.IO) *cobra.Command {
	o := &validations{maker: maker{streams: streams}}
	return o.command(o.run, true, &cobra.Command{
		Use:   "crd-validations -c CONFIG",
		Short: "Print the rules as a CustomResourceDefinition has them",
		Long: `Print the rules under validate as x-kubernetes-validations, to be pasted at the root
of the schema in an entry of spec.versions of the kind's CustomResourceDefinition.
Parameters are written in. Configs that watch one kind are printed as one.

Rules in a definition can read less than the operator: a rule is left out if it reads
inputs, the status, or metadata other than the name. Standard error and a comment say so.

With the CustomResourceDefinition itself among --crds, the rules are checked against it
as the API server does it: rules cannot read fields that its schema does not declare, and
a rule over lists, maps or strings without bounds is too expensive. The exit code
is 1 if the API server would refuse the definition.`,
		Example: `  corollary generate crd-validations -c app.yaml --crds crds/`,
	})
}

func (o *validations) run() error {
	list, err := o.configs.PipelinesOffline(o.streams, o.crds)
	if err != nil {
		return err
	}
	all, err := generate.CRDValidations(list)
	if err != nil {
		return err
	}
	definitions, err := kinds.CRDs(o.crds...)
	if err != nil {
		return err
	}
	refused, err := generate.FitAll(all, definitions)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, v := range all {
		command.WriteNotes(o.streams, v.Notes)
		if len(v.Rules) == 0 {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		if err := v.Write(&out); err != nil {
			return err
		}
	}
	if out.Len() == 0 {
		return fmt.Errorf("there is nothing to print: no config has a rule that a definition can express")
	}
	if _, err := o.streams.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the rules: %w", err)
	}
	return refusal(o.streams, refused)
}

// refusal writes what the API server would refuse the definitions for, and returns the error that the command ends
// with.
func refusal(streams command.IO, refused []string) error {
	if len(refused) == 0 {
		return nil
	}
	for _, why := range refused {
		fmt.Fprintln(streams.Err, why)
	}
	return fmt.Errorf("with these rules the API server would refuse the definition")
}
