package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

type getOptions struct {
	surveyFlags
	output command.Choice
	states []string
	watch  bool
	// running names the Lease of the process whose states these are.
	running runningFlags
}

func newGet(streams command.IO) *cobra.Command {
	o := &getOptions{surveyFlags: surveyFlags{streams: streams},
		output: command.Choice{Words: []string{"text", "wide", "json", "name"}}}
	cmd := &cobra.Command{
		Use:   "get -c CONFIG",
		Short: "List every object of every operator with its state",
		Long: `List the downstreams of every upstream with their state: InSync, Create, Update,
Repair, Conflict … (docs/conditions.md lists them all). Nothing is written: states
are computed as "corollary run" does it, with dry runs instead of writes. Contested
(another writer keeps undoing repairs) is taken from the upstream's status, because
only the running process counts repairs.

With -w it keeps watching and prints changes, until Ctrl-C. With -o wide, or if the
Lease of "corollary run" is named, it also says whether that is running, and when
each operator wrote last.`,
		Example: `  corollary get -c configs/

  # What needs attention
  corollary get -c configs/ --state Conflict,Contested,Invalid,RenderFailed

  # Follow one namespace
  corollary get -c configs/ -n team-a -w

  # Pass the objects to kubectl
  corollary get -c app.yaml --state Conflict -o name | xargs -L1 kubectl describe`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: command.RunUntilSignal(o.run),
	}
	o.bind(cmd, "Only upstreams in this namespace; by default all that the configs watch")
	flags := cmd.Flags()
	command.BindChoice(cmd, &o.output, "output", "o",
		"Output format: text, wide (whole reasons, and uids), json, or name (as kubectl takes it)")
	flags.StringSliceVar(&o.states, "state", nil, "Only objects in these states, separated by commas")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(rowStates(), cobra.ShellCompDirectiveNoFileComp))
	o.running.bind(cmd)
	flags.BoolVarP(&o.watch, "watch", "w", false, "Watch, and print what changes")
	return cmd
}

func (o *getOptions) run(ctx context.Context, _ []string) error {
	if err := o.checkStates(); err != nil {
		return err
	}
	if err := o.running.Check(); err != nil {
		return err
	}
	files, cfg, err := o.load()
	if err != nil {
		return err
	}
	s, line, err := o.surveyor(cfg, survey.Options{Ages: true, Left: true, Follow: o.watch})
	if err != nil {
		return err
	}
	t := &getTable{wanted: o.wanted, line: line,
		printer: &rowPrinter{w: o.streams.Out, list: jsonList{w: o.streams.Out}, format: o.output.Value, watching: o.watch}}
	if err := o.noteConversions(ctx, cfg, files, line.note); err != nil {
		return err
	}
	tellsRunning := o.running.Name != "" || o.output.Value == "wide"
	if tellsRunning {
		if err := o.running.note(ctx, cfg, &o.connection, line.note); err != nil {
			return err
		}
		if err := noteRequirements(cfg, files, line.note); err != nil {
			return err
		}
	}
	if o.watch {
		err = o.listAndWatch(ctx, s, files, t)
	} else {
		err = each(ctx, s, files, line.note, func(v *survey.Survey) error {
			var newest survey.Newest
			steps := v.Steps()
			err := v.Visit(ctx, v.Refs(), func(f *preview.Finding) error {
				newest.Add(f)
				steps.Add(ctx, f)
				return t.finding(v.Pipeline(), f)
			})
			if err == nil {
				noteRollout(v, steps, line.note)
			}
			if err != nil || !tellsRunning {
				return err
			}
			if at := newest.LastWrite(ctx, v); !at.IsZero() {
				line.note("operator %s last wrote at %s", v.Pipeline().Name, at.UTC().Format(time.RFC3339))
			}
			return nil
		})
	}
	line.clear()
	if failed := t.printer.end(); err == nil {
		err = failed
	}
	return err
}

// listAndWatch lists the objects of all operators, and then what changes, all at a time.
func (o *getOptions) listAndWatch(ctx context.Context, s *survey.Surveyor, files []*load.File, t *getTable) error {
	t.printed = map[string]findings.Row{}
	var surveys []*survey.Survey
	for _, file := range files {
		noteMode(file, t.line.note)
		v, err := s.Open(ctx, file)
		if err != nil {
			return err
		}
		defer v.Close()
		noteEmpty(v, t.line.note)
		noteUnknown(v, t.line.note)
		surveys = append(surveys, v)
		if err := v.Visit(ctx, v.Refs(), func(f *preview.Finding) error { return t.finding(v.Pipeline(), f) }); err != nil {
			return err
		}
	}
	t.line.clear()
	if err := t.printer.flush(); err != nil {
		return err
	}
	return survey.FollowAll(ctx, surveys, func(_ context.Context, v *survey.Survey, f *preview.Finding) error {
		return t.update(v.Pipeline(), f)
	})
}

// wanted reports whether a row's state is among those asked for.
func (o *getOptions) wanted(state string) bool {
	return len(o.states) == 0 || slices.ContainsFunc(o.states, func(s string) bool { return strings.EqualFold(s, state) })
}

// checkStates refuses a state that no object is ever in: an empty list would look as if all were well.
func (o *getOptions) checkStates() error {
	for _, s := range o.states {
		known := func(name string) bool { return strings.EqualFold(name, s) }
		if slices.ContainsFunc(rowStates(), known) {
			continue
		}
		if name := spelling.Closest(s, rowStates()); name != "" {
			return command.Usagef("--state: unknown state %s: did you mean %s?", s, name)
		}
		return command.Usagef("--state: unknown state %s: valid states are %s", s, strings.Join(rowStates(), ", "))
	}
	return nil
}

// rowStates are the states that a row can have.
func rowStates() []string {
	var list []string
	for _, s := range operator.States() {
		list = append(list, string(s))
	}
	slices.Sort(list)
	return list
}
