package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/survey"
)

type exportOptions struct {
	surveyFlags
	sqlite string
	watch  bool
}

func newExport(streams IO) *cobra.Command {
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
		Args: noArguments("configs are named with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return o.run(ctx)
		},
	}
	o.bind(cmd, "Only upstreams in this namespace; by default all that the configs watch")
	flags := cmd.Flags()
	flags.StringVar(&o.sqlite, "sqlite", "", "File to write")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Watch, and write what changes")
	return cmd
}

func (o *exportOptions) run(ctx context.Context) error {
	if o.sqlite == "" {
		return usagef("where to write is missing: add --sqlite FILE")
	}
	if _, err := checkExport(o.sqlite); err != nil {
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
	e, err := newExportFile(ctx, o.sqlite, line.note)
	if err != nil {
		return err
	}
	defer e.discard()
	if err := each(ctx, s, files, line.note, func(v *survey.Survey) error { return e.all(ctx, v) }); err != nil {
		return err
	}
	return e.publish(ctx)
}

// exportAndWatch writes everything, and then what changes.
func (o *exportOptions) exportAndWatch(ctx context.Context, s *survey.Surveyor, files []*config.File, line *progressLine) error {
	e, err := newExportFile(ctx, o.sqlite, line.note)
	if err != nil {
		return err
	}
	defer e.discard()
	var surveys []*survey.Survey
	for _, file := range files {
		noteMode(file, line.note)
		v, err := s.Open(ctx, file)
		if err != nil {
			return err
		}
		defer v.Close()
		surveys = append(surveys, v)
		if err := e.all(ctx, v); err != nil {
			return fmt.Errorf("operator %s: %w", file.Metadata.Name, err)
		}
	}
	if err := e.publish(ctx); err != nil {
		return err
	}
	if err := e.follow(ctx); err != nil {
		return err
	}
	line.clear()
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, v := range surveys {
		wg.Go(func() {
			if err := v.Follow(following, func(f *reconcile.Finding) error { return e.update(following, v.Pipeline(), f) }); err != nil {
				cancel(fmt.Errorf("operator %s: %w", v.Pipeline().Name, err))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(following); err != nil && !errors.Is(err, following.Err()) {
		return err
	}
	return nil
}

// all writes everything about one operator.
func (e *exportFile) all(ctx context.Context, v *survey.Survey) error {
	if err := v.Visit(ctx, v.Refs(), func(f *reconcile.Finding) error { return e.insert(ctx, v.Pipeline(), f) }); err != nil {
		return err
	}
	return e.written(ctx, v.Pipeline())
}

// update replaces what is said about one upstream.
func (e *exportFile) update(ctx context.Context, pl *pipeline.Pipeline, f *reconcile.Finding) error {
	e.updating.Lock()
	defer e.updating.Unlock()
	return e.whileBusy(ctx, func() error {
		if !isExport(e.place) {
			return fmt.Errorf("%s was removed, or replaced by a file that is not an export", e.place)
		}
		if err := e.begin(ctx); err != nil {
			return err
		}
		err := e.remove(ctx, f)
		if err == nil {
			err = e.insert(ctx, pl, f)
		}
		if err == nil {
			err = e.written(ctx, pl)
		}
		return e.end(err)
	})
}
