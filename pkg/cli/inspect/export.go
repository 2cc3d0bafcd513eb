package inspect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/sqlite"
)

type exportOptions struct {
	surveyFlags
	sqlite string
	watch  bool
}

func newExport(streams command.IO) *cobra.Command {
	o := &exportOptions{surveyFlags: surveyFlags{streams: streams}}
	cmd := &cobra.Command{
		Use:   "export -c CONFIG --sqlite FILE",
		Short: "Write upstreams, downstreams, states and conditions into a SQLite file",
		Long: `Write all upstreams, downstreams, states and conditions into a SQLite file, for
questions that an API server cannot answer: joins, groups, dashboards. The states are
those of "corollary get". Nothing is written to the cluster.

The tables are upstreams, downstreams, conditions and exports (docs/sql.md). They are
replaced in one transaction once everything is known; a file that is not an export is
refused. With -w, changes are written to it until Ctrl-C, one upstream at a time;
readers do not block that, and it goes on if the database of a source fails.`,
		Example: `  corollary export -c configs/ --sqlite state.db
  sqlite3 state.db "SELECT state, count(*) FROM downstreams GROUP BY state"

  # Keep it current
  corollary export -c configs/ --sqlite state.db -w`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: command.RunUntilSignal(o.run),
	}
	o.bind(cmd, "Only upstreams in this namespace; by default all that the configs watch")
	flags := cmd.Flags()
	flags.StringVar(&o.sqlite, "sqlite", "", "File to write")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Watch, and write what changes")
	return cmd
}

func (o *exportOptions) run(ctx context.Context, _ []string) error {
	if o.sqlite == "" {
		return command.Usagef("where to write is missing: add --sqlite FILE")
	}
	if _, err := sqlite.Check(o.sqlite); err != nil {
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
	defer line.clear()
	if o.watch {
		return o.exportAndWatch(ctx, s, files, line)
	}
	e, err := sqlite.New(ctx, o.sqlite, line.note)
	if err != nil {
		return err
	}
	defer e.Discard()
	if err := each(ctx, s, files, line.note, func(v *survey.Survey) error { return e.All(ctx, v) }); err != nil {
		return err
	}
	return e.Publish(ctx)
}

// exportAndWatch writes everything, and then what changes.
func (o *exportOptions) exportAndWatch(
	ctx context.Context, s *survey.Surveyor, files []*load.File, line *progressLine,
) error {
	e, err := sqlite.New(ctx, o.sqlite, line.note)
	if err != nil {
		return err
	}
	defer e.Discard()
	var surveys []*survey.Survey
	for _, file := range files {
		noteMode(file, line.note)
		v, err := s.Open(ctx, file)
		if err != nil {
			return err
		}
		defer v.Close()
		surveys = append(surveys, v)
		if err := e.All(ctx, v); err != nil {
			return fmt.Errorf("operator %s: %w", file.Metadata.Name, err)
		}
	}
	if err := e.Publish(ctx); err != nil {
		return err
	}
	if err := e.Follow(ctx); err != nil {
		return err
	}
	line.clear()
	return survey.FollowAll(ctx, surveys, func(ctx context.Context, v *survey.Survey, f *preview.Finding) error {
		return e.Update(ctx, v.Pipeline(), f)
	})
}
