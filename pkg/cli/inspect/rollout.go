package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// noteRollout says how far the rollout of a config is, if one is under way.
func noteRollout(v *survey.Survey, r *survey.Rollout, note noteFunc) {
	if p, _ := r.End(); p.State != "" {
		note("operator %s: rollout of %s since %s: %s, %s", v.Pipeline().Name, p.Config, p.Began.UTC().Format(time.RFC3339),
			p.State, p)
	}
}

type rolloutOptions struct {
	surveyFlags
	output command.Choice
	config string
	toEnd  bool
}

func newRollout(streams command.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Look at, and decide about, a change that reaches the upstreams in steps",
		Long: `Look at, and decide about, a changed config that reaches the upstreams in steps, as its
rollout says. What is decided is written to the key of the ConfigMap that
rollout.control names, for exactly one config: the one that "rollout status" names.`,
		Args: command.NoArguments("name one of the commands below"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRolloutStatus(streams))
	for _, decision := range decisions {
		cmd.AddCommand(newRolloutDecision(streams, decision))
	}
	return cmd
}

func newRolloutStatus(streams command.IO) *cobra.Command {
	o := &rolloutOptions{surveyFlags: surveyFlags{streams: streams},
		output: command.Choice{Words: []string{"text", "json"}}}
	cmd := &cobra.Command{
		Use:   "status -c CONFIG",
		Short: "Say how far a rollout is",
		Long: `Say how far the rollout of each config is, from what the cluster shows: which of its
steps is under way, how many upstreams are moved, are Ready or have failed, and which
ones are next. Nothing is written. The config is the one that is to be reached.`,
		Example: `  corollary rollout status -c app.yaml`,
		Args:    command.NoArguments("configs are named with -c"),
		RunE:    command.RunUntilSignal(o.status),
	}
	o.bind(cmd, "")
	command.BindChoice(cmd, &o.output, "output", "o", "Output format: text or json")
	return cmd
}

// rolloutItem is what is said of one operator.
type rolloutItem struct {
	Operator string `json:"operator"`
	rollout.Progress
	Steps string `json:"next,omitempty"`
}

func (o *rolloutOptions) status(ctx context.Context, _ []string) error {
	list := jsonList{w: o.streams.Out}
	err := o.survey(ctx, func(v *survey.Survey, r *survey.Rollout) error {
		p, waits := r.End()
		name := v.Pipeline().Name
		switch {
		case o.output.Value == "json":
			return list.add(rolloutItem{name, p, r.StepsText(p, waits)})
		case p.State == "":
			_, err := fmt.Fprintf(o.streams.Out, "operator %s: no rollout is under way\n", name)
			return err
		}
		_, err := fmt.Fprintf(o.streams.Out, "operator %s: rollout of config %s since %s: %s\n  %s\n  steps: %s\n", name,
			p.Config, p.Began.UTC().Format(time.RFC3339), p.State, p, r.StepsText(p, waits))
		return err
	})
	if o.output.Value == "json" && err == nil {
		err = list.finish("")
	}
	return err
}

// survey looks at every upstream of the configs that have a rollout.
func (o *rolloutOptions) survey(ctx context.Context, found func(*survey.Survey, *survey.Rollout) error) error {
	files, cfg, err := o.load()
	if err != nil {
		return err
	}
	var with []*load.File
	for _, f := range files {
		if f.Rollout != nil {
			with = append(with, f)
		}
	}
	if len(with) == 0 {
		return command.Usagef("no config has a rollout")
	}
	s, line, err := o.surveyor(cfg, survey.Options{})
	if err != nil {
		return err
	}
	defer line.clear()
	return each(ctx, s, with, line.note, func(v *survey.Survey) error {
		r := v.Steps()
		err := v.Visit(ctx, v.Refs(), func(f *preview.Finding) error {
			r.Add(ctx, f)
			return nil
		})
		if err != nil {
			return err
		}
		line.clear()
		return found(v, r)
	})
}

// decision is what a person can decide about a rollout.
type decision struct {
	use, short, long string
	// control is what is written, from how far the rollout is.
	control func(o *rolloutOptions, p rollout.Progress) rollout.Control
}

var decisions = []decision{
	{"pause", "Hold a rollout where it is", "Nothing more is moved until resume or promote.",
		func(_ *rolloutOptions, p rollout.Progress) rollout.Control {
			return rollout.Control{Config: p.Config, Paused: true}
		}},
	{"resume", "Let a paused rollout go on", "Takes back pause, promote and revert: the steps go on as the config says.",
		func(_ *rolloutOptions, p rollout.Progress) rollout.Control { return rollout.Control{Config: p.Config} }},
	{"promote", "Go to the next step, whatever has failed", `Goes to the end of the next step, or of the last one with --to-end, without a pause
and whatever has failed so far. Behind that, failures halt the rollout as before.`,
		func(o *rolloutOptions, p rollout.Progress) rollout.Control {
			c := rollout.Control{Config: p.Config, Promoted: p.Step}
			if p.Moved-p.Edited >= p.Limit {
				c.Promoted++
			}
			if o.toEnd {
				c.Promoted = p.Steps + 1
			}
			return c
		}},
	{"revert", "Give back what was moved", `Gives the config before to what was moved, the last first, if the running process still
has it: it was not restarted since the reload. Otherwise the rollout holds where it is.`,
		func(_ *rolloutOptions, p rollout.Progress) rollout.Control {
			return rollout.Control{Config: p.Config, Reverts: true}
		}},
}

func newRolloutDecision(streams command.IO, d decision) *cobra.Command {
	o := &rolloutOptions{surveyFlags: surveyFlags{streams: streams}}
	cmd := &cobra.Command{
		Use:     d.use + " -c CONFIG [OPERATOR] --digest DIGEST",
		Short:   d.short,
		Long:    d.long + "\n\nOPERATOR can be left out if only one of the configs has rollout.control.",
		Example: "  corollary rollout " + d.use + " -c app.yaml --digest 8a5c01d2e4b6",
		Args:    cobra.MaximumNArgs(1),
		RunE: command.RunUntilSignal(func(ctx context.Context, names []string) error {
			return o.decide(ctx, d, names)
		}),
	}
	o.bind(cmd, "")
	cmd.Flags().StringVar(&o.config, "digest", "",
		"Digest of the config that is rolled out, as corollary rollout status says (required)")
	if d.use == "promote" {
		cmd.Flags().BoolVar(&o.toEnd, "to-end", false, "Go to all upstreams at once")
	}
	return cmd
}

// decide writes a decision, as the operator's field manager.
func (o *rolloutOptions) decide(ctx context.Context, d decision, names []string) error {
	if o.config == "" {
		return command.Usagef("required flag --digest is not set: corollary rollout status says the digest of the config")
	}
	decided := 0
	err := o.survey(ctx, func(v *survey.Survey, r *survey.Rollout) error {
		p, _ := r.End()
		op := v.Pipeline().Config
		at := op.Rollout.Control
		switch {
		case len(names) > 0 && names[0] != op.Metadata.Name:
			return nil
		case len(names) == 0 && at == nil:
			return nil
		case at == nil:
			return command.Usagef("operator %s has no rollout.control, which names where that is written", op.Metadata.Name)
		case p.State == "":
			return fmt.Errorf("operator %s: no rollout is under way", op.Metadata.Name)
		case p.Config != o.config:
			return fmt.Errorf("operator %s: the config that is rolled out is %s, and --digest names %s: look at it again with "+
				"corollary rollout status", op.Metadata.Name, p.Config, o.config)
		}
		client, err := o.connection.Dynamic()
		if err != nil {
			return err
		}
		decided++
		control := d.control(o, p)
		control.At = time.Now().Unix()
		if err := command.Decide(ctx, client, at, control.String(), op.Conventions.FieldManager+"-rollout"); err != nil {
			return fmt.Errorf("operator %s: %w", op.Metadata.Name, err)
		}
		_, err = fmt.Fprintf(o.streams.Out, "operator %s: %s is written under key %s of ConfigMap %s\n", op.Metadata.Name,
			control, at.Key, operator.Ref{Namespace: at.Namespace, Name: at.ConfigMap})
		return err
	})
	if err == nil && decided == 0 {
		err = command.Usagef("no such operator has rollout.control, which names where that is written")
	}
	return err
}
