// Package check is the command check: it compiles configs and conversions as run does, and reports what it knows of
// them.
package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/described"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/hints"
)

type checkOptions struct {
	streams    command.IO
	configs    command.Configs
	crds       []string
	live       bool
	connection command.Connection
}

// New returns the command check.
func New(streams command.IO) *cobra.Command {
	o := &checkOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "check -c CONFIG",
		Short: "Check configs without a cluster",
		Long: `Check configs and report all errors at once, each as FILE:LINE: path: problem: how
to fix it. It also reports:

  - which kinds are typed: if a kind's schema is known, a rule that names a field
    which does not exist is an error, and so is a template that needs one; a
    template that only reads one, with a default or in a condition, is a warning.
    Built-in kinds are always typed; for others give their
    CustomResourceDefinitions with --crds, or use an API server with --live;
  - what the API server would refuse in a typed downstream: an unknown field, a value
    of another type or outside of an enum, a duplicate item, a missing required
    field: an error if it is certain, else a warning;
  - fields of the upstream that may change and that a template prints into an
    immutable field of a built-in kind, and keys that YAML reads as something else;
  - fields that a template may not set, such as status or metadata.uid: an error if
    every path through the template sets one, else a warning;
  - the holes through which structure enters a downstream: there a custom
    resource can put a whole map or list, everywhere else only text or a number;
  - what the upstream's schema lacks to store the status, as lines to paste;
  - of conversions, what "corollary convert prove" reports before it proves, and that
    the certificate is for these rules. If only schemas have changed, the proof is
    repeated.

Without --live no API server is used. The exit code is 1 if there is an error.`,
		Example: `  # Rules and status typed by the CustomResourceDefinition
  corollary check -c app.yaml --crds crds/

  # All configs of a directory, typed by the cluster of the current context
  corollary check -c configs/ --live

  # With an override
  corollary check -c app.yaml --set 'appoperator:.retry.minDelay=10s'`,
		Args: command.NoArguments("configs are named with -c, CustomResourceDefinitions with --crds"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.configs.Bind(cmd)
	command.BindCRDs(cmd, &o.crds)
	cmd.Flags().BoolVar(&o.live, "live", false,
		"Take kinds and schemas from the API server instead of files; nothing is written")
	o.connection.Bind(cmd, "")
	return cmd
}

func (o *checkOptions) run(ctx context.Context) error {
	options, err := o.kinds()
	if err != nil {
		return err
	}
	again, err := o.configs.Repeatable(o.streams)
	if err != nil {
		return err
	}
	files, problems, err := o.configs.Load(again())
	if err != nil {
		return err
	}
	conversions, wrong := o.configs.ConversionsBeside(files, again())
	problems = append(problems, wrong...)
	activations, wrong := load.Activations(load.Options{Files: o.configs.Files, Stdin: again().In, Anybody: true}, files)
	list, problems, err := compile.All(files, append(problems, wrong...), options)
	differences, failed := o.differences(ctx, list, conversions)
	err = errors.Join(err, failed)
	source, asked := compile.WithDescribed(files, options.Kinds), hints.Of(list)
	warnings, hinted := 0, 0
	for _, c := range list {
		r := reportOf(c, source, asked[c.Pipeline])
		for _, d := range differences {
			if c.File.Concerns(d) {
				r.warnings = append(r.warnings, d.Error())
			}
		}
		warnings, hinted = warnings+len(r.warnings), hinted+len(r.hints)
		r.write(o.streams.Out)
		for i := range c.Pipeline.Refusals {
			problems = append(problems, &c.Pipeline.Refusals[i])
		}
	}
	if err == nil {
		wrong, err = o.conversions(ctx, conversions)
		problems = append(problems, wrong...)
	}
	if err := command.Refuse(o.streams, problems, err); err != nil {
		return err
	}
	for _, a := range activations {
		warnings += len(a.Warnings())
		writeActivationWarnings(o.streams.Out, a)
	}
	checked := command.Count(len(list), "operator")
	if len(conversions) > 0 {
		checked += ", " + command.Count(len(conversions), "conversion")
	}
	if len(activations) > 0 {
		checked += ", " + command.Count(len(activations), "activation")
	}
	fmt.Fprintf(o.streams.Out, "%s: no errors, %s", checked, command.Count(warnings, "warning"))
	if hinted > 0 {
		fmt.Fprintf(o.streams.Out, ", %s", command.Count(hinted, "hint"))
	}
	fmt.Fprintln(o.streams.Out)
	return nil
}

// differences warns of kinds that configs describe and that are defined differently in the cluster, or in files, and of
// versions that drop fields.
func (o *checkOptions) differences(
	ctx context.Context, list []compile.Compiled, converting []*load.ConversionFile,
) (config.Errors, error) {
	find, where, err := o.finder(ctx)
	if err != nil {
		return nil, err
	}
	differing, err := described.Compare(list, where, o.live, find)
	if err != nil {
		return nil, err
	}
	dropping, err := conversions.WarnOfDropping(list, converting, find)
	return append(differing, dropping...), err
}

// finder finds definitions in the cluster, or in files.
func (o *checkOptions) finder(ctx context.Context) (find conversions.Find, where string, err error) {
	if !o.live {
		find, err = conversions.DefinitionsIn(o.crds)
		return find, "the files", err
	}
	client, err := o.connection.Dynamic()
	if err != nil {
		return nil, "", err
	}
	return conversions.DefinitionsOf(ctx, client), "the cluster", nil
}

// conversions checks conversions against the definitions of their kinds, and that they are proven.
func (o *checkOptions) conversions(ctx context.Context, files []*load.ConversionFile) (config.Errors, error) {
	if len(files) == 0 {
		return nil, nil
	}
	find, err := o.definitions()
	if err != nil {
		return nil, err
	}
	var problems config.Errors
	for _, f := range files {
		crd, err := find(ctx, f)
		if err != nil {
			return problems, err
		}
		if crd == nil {
			fmt.Fprintf(o.streams.Out, "conversion %s: not checked: give the CustomResourceDefinition of %s with --crds\n",
				f.Name, f.For)
			continue
		}
		c, found := conversions.Compile(f, crd, false)
		if len(found) == 0 {
			if unproven := c.Proven(ctx); unproven != nil {
				found = config.Errors{unproven}
			}
		}
		if problems = append(problems, found...); len(found) == 0 {
			fmt.Fprintf(o.streams.Out, "conversion %s: %s between %s and %s, proven\n",
				f.Name, f.For, strings.Join(c.Converter.Versions(), ", "), f.Hub)
		}
	}
	return problems, nil
}

// definitions finds the definition of a conversion's kind; nil for one that no file has.
func (o *checkOptions) definitions() (
	find func(context.Context, *load.ConversionFile) (*apiextensionsv1.CustomResourceDefinition, error), err error,
) {
	if !o.live {
		list, err := kinds.CRDs(o.crds...)
		return func(_ context.Context, f *load.ConversionFile) (*apiextensionsv1.CustomResourceDefinition, error) {
			return conversions.DefinitionFor(list, f), nil
		}, err
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return nil, err
	}
	s, err := conversions.NewSource(cfg)
	if err != nil {
		return nil, err
	}
	return s.Definition, nil
}

// kinds decides where kinds come from. Only with --live is there a client at all.
func (o *checkOptions) kinds() (compile.Options, error) {
	if !o.live {
		var given string
		o.connection.Flags.VisitAll(func(f *pflag.Flag) {
			if f.Changed && given == "" {
				given = f.Name
			}
		})
		if given != "" {
			return compile.Options{}, command.Usagef("--%s has no effect without --live: no API server is asked", given)
		}
		source, err := kinds.Offline(o.crds...)
		return compile.Options{Kinds: source}, err
	}
	if len(o.crds) > 0 {
		return compile.Options{},
			command.Usagef("--crds and --live cannot be combined: kinds come from files or from the API server")
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return compile.Options{}, err
	}
	return command.LiveKinds(cfg)
}
