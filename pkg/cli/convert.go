package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

type convertOptions struct {
	streams IO
	configs configFlags
	crds    []string
	files   []string
	to      string
}

func newConvert(streams IO) *cobra.Command {
	o := &convertOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "convert -c CONFIG --crds FILE -f FILE --to VERSION",
		Short: "Convert custom resources to another version, without a cluster",
		Long: `Convert custom resources to another version of their kind by the rules of a config
of kind Conversion, and print them. The API server converts with the same code.

Each object is read as the API server would read it: fields that its version does
not have are dropped, and defaults are filled in.`,
		Example: `  corollary convert -c conversion.yaml --crds crd.yaml -f crontab.yaml --to v1

  # Prove that nothing is lost
  corollary convert prove -c conversion.yaml --crds crd.yaml`,
		Args: noArguments("custom resources are named with -f, configs with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bind(cmd)
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil,
		"File with custom resources, a directory of them, or - for standard input; may be repeated")
	completeFiles(cmd, "filename", "yaml", "yml", "json")
	cmd.Flags().StringVar(&o.to, "to", "", "Version to convert to, such as v1")
	cmd.AddCommand(newConvertProve(streams))
	return cmd
}

func (o *convertOptions) bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&o.configs.files, "config", "c", nil, "Config file, a directory of them, or - for standard input; may be repeated")
	completeFiles(cmd, "config", "yaml", "yml")
	bindCRDs(cmd, &o.crds)
}

// conversion is a config with what it was compiled to.
type conversion struct {
	file      *config.ConversionFile
	converter *convert.Converter
	versions  []*kinds.Version
}

// compile reads the configs and compiles them against the definitions of --crds.
func (o *convertOptions) compile() ([]*conversion, error) {
	if len(o.configs.files) == 0 {
		return nil, usagef("no config is named: add -c FILE, or -c DIRECTORY")
	}
	definitions, err := kinds.CRDs(o.crds...)
	if err != nil {
		return nil, err
	}
	files, problems := config.LoadConversions(config.Options{Files: o.configs.files, Env: o.streams.Env, Stdin: o.streams.In})
	var list []*conversion
	for _, f := range files {
		c, found := compileConversion(f, definitions)
		problems = append(problems, found...)
		list = append(list, c)
	}
	if err := refuse(o.streams, problems, nil); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, usagef("no config of kind %s is among the files of -c", config.ConversionKind)
	}
	return list, nil
}

// compileConversion compiles one conversion. Problems of a file that could not be read whole would repeat what is wrong with it.
func compileConversion(f *config.ConversionFile, definitions []*apiextensionsv1.CustomResourceDefinition) (*conversion, config.Errors) {
	i := slices.IndexFunc(definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == f.For.Group && d.Spec.Names.Kind == f.For.Kind
	})
	if i < 0 {
		return nil, config.Errors{f.Errorf("for", "give the file of its CustomResourceDefinition with --crds", "%s is not defined", f.For)}
	}
	versions, err := kinds.Versions(definitions[i])
	if err != nil {
		return nil, config.Errors{f.Errorf("for", "fix the CustomResourceDefinition", "%v", err)}
	}
	made, problems := convert.Compile(&f.Conversion, convert.Options{Kind: f.For, Versions: versions, Stored: stored(definitions[i])})
	var errs config.Errors
	for _, p := range problems {
		errs = append(errs, f.Errorf(p.Path, "", "%s", p.Message))
	}
	return &conversion{file: f, converter: made, versions: versions}, errs
}

func stored(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func (o *convertOptions) run(ctx context.Context) error {
	if o.to == "" {
		return usagef("no version is named: add --to VERSION")
	}
	list, err := o.compile()
	if err != nil {
		return err
	}
	objects, errs := readUpstreams(o.files, o.streams.In)
	if len(o.files) == 0 {
		return usagef("no custom resource is named: add -f FILE")
	}
	var documents [][]byte
	for _, u := range objects {
		text, err := convertOne(ctx, list, u.object.Object, o.to)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u, err))
		}
		documents = append(documents, text)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i, text := range documents {
		if i > 0 {
			fmt.Fprintln(o.streams.Out, "---")
		}
		fmt.Fprint(o.streams.Out, string(text))
	}
	return nil
}

func convertOne(ctx context.Context, list []*conversion, obj map[string]any, to string) ([]byte, error) {
	text, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(text, kind)
	i := slices.IndexFunc(list, func(c *conversion) bool { return c.file.For == gvk.GroupKind() })
	if i < 0 {
		return nil, fmt.Errorf("no config converts %s: add it with -c", gvk.GroupKind())
	}
	version := func(name string) *kinds.Version {
		n := slices.IndexFunc(list[i].versions, func(v *kinds.Version) bool { return v.Name == name })
		if n < 0 {
			return nil
		}
		return list[i].versions[n]
	}
	if from := version(gvk.Version); from != nil {
		from.Coerce(obj)
	}
	if err := list[i].converter.Convert(ctx, obj, to); err != nil {
		return nil, err
	}
	version(to).Coerce(obj)
	return yaml.Marshal(obj)
}
