package cli

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type generateValidationsOptions struct {
	streams command.IO
	configs command.Configs
	crds    []string
}

func newGenerateValidations(streams command.IO) *cobra.Command {
	o := &generateValidationsOptions{streams: streams}
	cmd := &cobra.Command{
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
		Args:    command.NoArguments("configs are named with -c, CustomResourceDefinitions with --crds"),
		RunE:    func(*cobra.Command, []string) error { return o.run() },
	}
	o.configs.Bind(cmd)
	command.BindCRDs(cmd, &o.crds)
	return cmd
}

func (o *generateValidationsOptions) run() error {
	list, err := o.configs.PipelinesOffline(o.streams, o.crds)
	if err != nil {
		return err
	}
	all, err := generate.CRDValidations(list)
	if err != nil {
		return err
	}
	refused, err := o.fit(all)
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
		if err := writeValidations(&out, v); err != nil {
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

// fit holds rules to the definitions of their kinds, where these are among the files, and returns what the API server would
// refuse them for.
func (o *generateValidationsOptions) fit(all []*generate.Validations) (refused []string, err error) {
	definitions, err := kinds.Definitions(o.crds...)
	if err != nil {
		return nil, err
	}
	for _, u := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", u.GetName(), err)
		}
		for _, v := range all {
			if crd.Spec.Group != v.Kind.Group || crd.Spec.Names.Kind != v.Kind.Kind {
				continue
			}
			why, err := v.Fit(crd)
			if err != nil {
				return nil, err
			}
			refused = append(refused, why...)
		}
	}
	return refused, nil
}

// refusal writes what the API server would refuse the definitions for, and returns the error that the command ends with.
func refusal(streams command.IO, refused []string) error {
	if len(refused) == 0 {
		return nil
	}
	for _, why := range refused {
		fmt.Fprintln(streams.Err, why)
	}
	return fmt.Errorf("with these rules the API server would refuse the definition")
}

// writeValidations prints what is to be pasted for one kind.
func writeValidations(out *bytes.Buffer, v *generate.Validations) error {
	out.WriteString(versionHead(v.Kind, v.Operators))
	for _, note := range v.Notes {
		fmt.Fprintf(out, "# note: %s\n", note)
	}
	lines, err := v.Lines()
	if err != nil {
		return err
	}
	text, err := yamltext.Of(lines)
	out.WriteString(text)
	return err
}
