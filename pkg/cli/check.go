package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

type checkOptions struct {
	streams    IO
	configs    configFlags
	crds       []string
	live       bool
	connection connection
}

func newCheck(streams IO) *cobra.Command {
	o := &checkOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "check -c CONFIG",
		Short: "Check configs without a cluster",
		Long: `Check configs and report all errors at once, each as FILE:LINE: path: problem: how
to fix it. It also reports:

  - which kinds are typed: if a kind's schema is known, a rule that names a field
    which does not exist is an error, and a template that reads one is a warning.
    Built-in kinds are always typed; for others give their
    CustomResourceDefinitions with --crds, or ask an API server with --live;
  - what the API server would refuse in a typed downstream: an unknown field, a value
    of another type or outside of an enum, a duplicate item, a missing required
    field: an error if it is certain, else a warning;
  - fields that a template may not set, such as status or metadata.uid: an error if
    every path through the template sets one, else a warning;
  - the holes through which structure enters a downstream: there a custom
    resource can put a whole map or list, everywhere else only text or a number;
  - what the upstream's schema lacks to store the status, as lines to paste.

Without --live no API server is asked. The exit code is 1 if there is an error.`,
		Example: `  # Rules and status typed by the CustomResourceDefinition
  corollary check -c app.yaml --crds crds/

  # All configs of a directory, typed by the cluster of the current context
  corollary check -c configs/ --live

  # With an override
  corollary check -c app.yaml --set 'appoperator:.retry.minDelay=10s'`,
		Args: noArguments("configs are named with -c, CustomResourceDefinitions with --crds"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run() },
	}
	o.configs.bind(cmd)
	bindCRDs(cmd, &o.crds)
	cmd.Flags().BoolVar(&o.live, "live", false, "Take kinds and schemas from the API server instead of files; nothing is written")
	o.connection.bind(cmd, "")
	return cmd
}

// bindCRDs adds the flag by which offline commands learn of custom kinds.
func bindCRDs(cmd *cobra.Command, crds *[]string) {
	cmd.Flags().StringArrayVar(crds, "crds", nil, "File or directory with CustomResourceDefinitions; may be repeated")
	completeFiles(cmd, "crds", "yaml", "yml", "json")
}

func (o *checkOptions) run() error {
	options, err := o.kinds()
	if err != nil {
		return err
	}
	files, problems, err := o.configs.load(o.streams)
	if err != nil {
		return err
	}
	list, problems, err := pipeline.CompileAll(files, problems, options)
	warnings := 0
	for _, c := range list {
		r := reportOf(c, options.Kinds)
		warnings += len(r.warnings)
		r.write(o.streams.Out)
		for i := range c.Pipeline.Refusals {
			problems = append(problems, &c.Pipeline.Refusals[i])
		}
	}
	if err := refuse(o.streams, problems, err); err != nil {
		return err
	}
	fmt.Fprintf(o.streams.Out, "%s: no errors, %s\n", count(len(list), "operator"), count(warnings, "warning"))
	return nil
}

// kinds decides where kinds come from. Only with --live is there a client at all.
func (o *checkOptions) kinds() (pipeline.Options, error) {
	if !o.live {
		var given string
		o.connection.flags.VisitAll(func(f *pflag.Flag) {
			if f.Changed && given == "" {
				given = f.Name
			}
		})
		if given != "" {
			return pipeline.Options{}, usagef("--%s has no effect without --live: no API server is asked", given)
		}
		source, err := kinds.Offline(o.crds...)
		return pipeline.Options{Kinds: source}, err
	}
	if len(o.crds) > 0 {
		return pipeline.Options{}, usagef("--crds and --live cannot be combined: kinds come from files or from the API server")
	}
	cfg, err := o.connection.rest()
	if err != nil {
		return pipeline.Options{}, err
	}
	return liveKinds(cfg)
}
