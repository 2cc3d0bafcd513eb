package inspect

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/survey"
)

type planOptions struct {
	surveyFlags
	against command.Configs
	output  command.Choice
	color   command.Color
	noDiff  bool
}

// markdown is the format of a plan in a comment.
const markdown = "markdown"

func newPlan(streams command.IO) *cobra.Command {
	o := &planOptions{surveyFlags: surveyFlags{streams: streams},
		output: command.Choice{Words: []string{command.Text, command.JSON, markdown}}}
	cmd := &cobra.Command{
		Use:   "plan -c CONFIG",
		Short: "Show what run would do in a cluster",
		Long: `Read a cluster as "corollary run" does at its start, and print for each upstream
what would be created, updated, recreated or deleted, and what the API server would
refuse. Nothing is written: each write is sent as a dry run, so defaults, validation
and admission apply. If you are not allowed to make dry runs, the fields are compared
by this command instead, and the plan says so.

  + create          ~ update, repair    -/+ recreate
  - delete          ^ release           ! refused, conflict
  = left as it is   * waits             ? left over: unmanaged

With --against OLDCONFIG it shows what changing from that config to the one in -c
would do: only what differs between the two, and what the new one would leave behind,
such as objects of a downstream or kind that it no longer has.

A plan contains neither the upstreams' status and events, nor the downstreams of
objects that do not exist yet: plan again when they do.

The exit code is 0 if nothing would change, 2 if something would, and 1 on an error.
Values of Secrets are shown as (masked), and so is every value of an object whose
template reads a Secret.`,
		Example: `  corollary plan -c app.yaml

  # What a changed config would do, before it is rolled out
  git show HEAD~1:app.yaml > old.yaml
  corollary plan -c app.yaml --against old.yaml

  # The plan as lines of "ACTION KIND NAMESPACE/NAME"
  corollary plan -c app.yaml -o json | jq -r '.items[] | "\(.action) \(.kind) \(.namespace)/\(.name)"'

  # For a comment on a pull request
  corollary plan -c app.yaml --against old.yaml -o markdown > plan.md

  # With the rights that the operator itself has
  corollary plan -c app.yaml --as system:serviceaccount:corollary:corollary`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: command.RunUntilSignal(o.run),
	}
	o.bind(cmd, "Only upstreams in this namespace; by default all that the configs watch")
	flags := cmd.Flags()
	command.BindFiles(cmd, &o.against.Files, "against", "",
		"The current config: show what changing from it to -c would do; a file or directory, may be repeated", "yaml", "yml")
	command.BindChoice(cmd, &o.output, "output", "o",
		"Output format: text, json (documented in docs/cli.md), or markdown (for a comment on a pull request)")
	flags.BoolVar(&o.noDiff, "no-diff", false, "Do not print fields: one line for each object")
	o.color.Bind(cmd)
	return cmd
}

func (o *planOptions) run(ctx context.Context, _ []string) error {
	files, cfg, err := o.load()
	if err != nil {
		return err
	}
	source, err := conversions.NewSource(cfg)
	if err != nil {
		return err
	}
	source.Take(o.configs.ConversionsBeside(files, o.streams))
	s, line, err := o.surveyor(cfg, survey.Options{Documents: true, Unconverted: source.Unconverted})
	if err != nil {
		return err
	}
	p := newPlanning(o, line)
	if len(o.against.Files) > 0 {
		err = p.compare(ctx, s, files)
	} else {
		err = each(ctx, s, files, line.note, func(v *survey.Survey) error { return p.planOperator(ctx, v) })
	}
	line.clear()
	if err != nil {
		return errors.Join(err, p.printer.stop())
	}
	return p.end()
}
