package generate

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type chart struct {
	maker
}

func newChart(streams command.IO) *cobra.Command {
	o := &chart{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
		Use:   "chart-values -c CONFIG",
		Short: "Print the values of the Helm chart for configs",
		Long: `Print values for the Helm chart: each config as operatorFiles.NAME, byte for byte, and
the files that it names (templateFile, conventionsFile) under files, as are conversions,
their certificates and activations among the configs. If a file is in a directory above
its config, its name is changed to one in the config's directory, where the chart mounts
it. Notes on standard error say what rights have to be granted by hand.

With --crds, kinds whose resource is not the regular plural, and cluster-scoped ones,
are listed under kinds, so that the chart grants rights to the right resources. The
CustomResourceDefinitions of kinds that configs describe by watch.schema are under crds,
which the chart installs.`,
		Example: `  corollary generate chart-values -c apps/ --crds crds/ > values.yaml
  helm upgrade --install corollary charts/corollary -n corollary --create-namespace -f values.yaml`,
	})
	_ = cmd.Flags().MarkHidden("set") // it is refused, with what to do instead
	return cmd
}

func (o *chart) run() error {
	switch {
	case len(o.configs.Set) > 0:
		return command.Usagef(
			"--set is not supported here: values hold the config files as they are; change the file, or set " +
				"COROLLARY_SET_<anything> " +
				"under the chart's env")
	case o.configs.ReadsStdin():
		return command.Usagef("-c - is not supported here: give a file, so that the files that it names are found")
	}
	files, source, err := o.configs.Offline(o.streams, o.crds)
	if err != nil {
		return err
	}
	described, err := o.describedBy(files, source)
	if err != nil {
		return err
	}
	conversions, beside, err := o.beside(files)
	if err != nil {
		return err
	}
	values, notes, err := generate.ChartValues(generate.ChartOptions{
		Operators: files, Conversions: conversions, Beside: beside, Read: os.ReadFile, Kinds: source, Described: described,
	})
	if err != nil {
		return err
	}
	command.WriteNotes(o.streams, notes)
	text, err := yamltext.Of(values)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.Out, "# Values of the Helm chart for %s.\n%s", command.Count(len(files),
		"operator"), text)
	if err != nil {
		return fmt.Errorf("writing the values: %w", err)
	}
	return nil
}

// beside returns the conversions, and the files of other kinds that are read with the configs.
func (o *chart) beside(files []*load.File) ([]*load.ConversionFile, []string, error) {
	conversions, problems := o.configs.ConversionsBeside(files, o.streams)
	activations, more := load.Activations(load.Options{Files: o.configs.Files, Anybody: true}, nil)
	if err := command.Refuse(o.streams, append(problems, more...), nil); err != nil {
		return nil, nil, err
	}
	var paths []string
	for _, c := range conversions {
		if !slices.ContainsFunc(files, func(f *load.File) bool { return f.Path == c.Path() }) {
			paths = append(paths, c.Path())
		}
		if c.Certificate != nil {
			paths = append(paths, c.Certificate.Path)
		}
	}
	for _, a := range activations {
		paths = append(paths, a.Path())
	}
	return conversions, paths, nil
}
