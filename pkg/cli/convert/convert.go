// Package convert is the command convert, with prove, suggest and rehub: it prints what pkg/convert makes and finds.
package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/offline"
)

type convertOptions struct {
	streams command.IO
	configs command.Configs
	crds    []string
	files   []string
	to      string
	output  command.Output
}

// New returns the command convert, with those below it.
func New(streams command.IO) *cobra.Command {
	o := &convertOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "convert -c CONFIG --crds FILE -f FILE --to VERSION",
		Short: "Convert custom resources to another version, without a cluster",
		Long: `Convert custom resources to another version of their kind, as the conversion of an
operator or a file of kind Conversion says, and print them. What "corollary run"
answers to the API server is made by the same code.

Each object is read as the API server would read it: fields that its version does
not have are dropped, and defaults are filled in.`,
		Example: `  corollary convert -c conversion.yaml --crds crd.yaml -f crontab.yaml --to v1

  # Prove that nothing is lost
  corollary convert prove -c conversion.yaml --crds crd.yaml`,
		Args: command.NoArguments("custom resources are named with -f, configs with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bind(cmd)
	command.BindUpstreams(cmd, &o.files)
	cmd.Flags().StringVar(&o.to, "to", "", "Version to convert to, such as v1")
	o.output.Bind(cmd, "Output format: yaml, kyaml, or json (an object for one custom resource, a List for several)",
		command.YAML, command.JSON, command.KYAML)
	cmd.AddCommand(newProve(streams), newSuggest(streams), newRehub(streams))
	return cmd
}

func (o *convertOptions) bind(cmd *cobra.Command) {
	o.configs.BindFiles(cmd)
	command.BindCRDs(cmd, &o.crds)
}

// compile reads the configs and compiles their conversions against the definitions of --crds.
func (o *convertOptions) compile() ([]*conversions.Conversion, error) {
	definitions, err := kinds.CRDs(o.crds...)
	if err != nil {
		return nil, err
	}
	return o.compileAgainst(func(f *load.ConversionFile) (*apiextensionsv1.CustomResourceDefinition, error) {
		if crd := conversions.DefinitionFor(definitions, f); crd != nil {
			refusals, err := kinds.Refusals(context.Background(), crd)
			if err == nil && len(refusals) > 0 {
				err = fmt.Errorf("API servers refuse CustomResourceDefinition %s: %s: %s", crd.Name,
					refusals[0].Path, refusals[0].Reason)
			}
			return crd, err
		}
		return nil, f.Errorf("", "give the file of its CustomResourceDefinition with --crds", "%s is not defined", f.For)
	})
}

// compileAgainst reads the configs and compiles their conversions, each against the definition that is found for it.
func (o *convertOptions) compileAgainst(
	find func(*load.ConversionFile) (*apiextensionsv1.CustomResourceDefinition, error),
) ([]*conversions.Conversion, error) {
	again, err := o.configs.Repeatable(o.streams)
	if err != nil {
		return nil, err
	}
	files, problems, err := o.configs.LoadConversions(again)
	if err != nil {
		return nil, err
	}
	var list []*conversions.Conversion
	for _, f := range files {
		crd, err := find(f)
		var problem *config.Error
		if errors.As(err, &problem) {
			problems = append(problems, problem)
			continue
		}
		if err != nil {
			return nil, err
		}
		c, found := conversions.Compile(f, crd, false)
		problems, list = append(problems, found...), append(list, c)
	}
	if err := command.Refuse(o.streams, problems, nil); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, command.Usagef("the files of -c have no conversion: neither a key conversion, nor a file of kind %s",
			conversion.ConversionKind)
	}
	return list, nil
}

func (o *convertOptions) run(ctx context.Context) error {
	if o.to == "" {
		return command.Usagef("no version is named: add --to VERSION")
	}
	list, err := o.compile()
	if err != nil {
		return err
	}
	objects, errs := offline.Read(o.files, o.streams.In)
	if len(o.files) == 0 {
		return command.Usagef("no custom resource is named: add -f FILE")
	}
	documents := make([]map[string]any, 0, len(objects))
	for _, u := range objects {
		documents = append(documents, u.Object.Object)
		if err := convertOne(ctx, list, u.Object.Object, o.to); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return o.output.Documents(o.streams.Out, documents)
}

func convertOne(ctx context.Context, list []*conversions.Conversion, obj map[string]any, to string) error {
	text, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(text, kind)
	i := slices.IndexFunc(list, func(c *conversions.Conversion) bool { return c.File.For == gvk.GroupKind() })
	if i < 0 {
		return fmt.Errorf("no config converts %s: add it with -c", gvk.GroupKind())
	}
	if from := list[i].Version(gvk.Version); from != nil {
		from.Coerce(obj)
	}
	if err := list[i].Converter.Convert(ctx, obj, to); err != nil {
		return err
	}
	list[i].Version(to).Coerce(obj)
	return nil
}
