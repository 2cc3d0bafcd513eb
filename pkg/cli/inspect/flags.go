package inspect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// surveyFlags are those of the commands that look at a cluster through the eyes of the operators.
type surveyFlags struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
	workers    int
	verbose    bool
}

func (f *surveyFlags) bind(cmd *cobra.Command, namespaceUsage string) {
	f.configs.Bind(cmd)
	f.connection.Bind(cmd, namespaceUsage)
	cmd.Flags().IntVar(&f.workers, "workers", 8, "Number of upstreams that are read at once")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false,
		"Print the progress to standard error, even if it is not a terminal")
}

// namespace is that of -n; empty if it was not given.
func (f *surveyFlags) namespace() string { return f.connection.Overrides.Context.Namespace }

// load reads the configs and holds them to the API server's schemas, as run does it.
func (f *surveyFlags) load() ([]*load.File, *rest.Config, error) {
	if f.workers < 1 {
		return nil, nil, command.Usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	files, problems, err := f.configs.Load(f.streams)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := f.fit(files, problems)
	return files, cfg, err
}

// fit reports every error of configs that are loaded, those that only the API server's schemas show among them.
func (f *surveyFlags) fit(files []*load.File, problems config.Errors) (*rest.Config, error) {
	cfg, err := f.connection.REST()
	if err != nil {
		return nil, command.Refuse(f.streams, problems, err)
	}
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return nil, command.Refuse(f.streams, problems, err)
	}
	_, problems, err = compile.All(files, problems, options)
	return cfg, command.Refuse(f.streams, problems, err)
}

// surveyor prepares to look.
func (f *surveyFlags) surveyor(cfg *rest.Config, o survey.Options) (*survey.Surveyor, *progressLine, error) {
	f.streams.Silence()
	line := &progressLine{w: f.streams.Err, terminal: command.AtTerminal(f.streams.Err)}
	line.on = line.terminal || f.verbose
	o.Workers, o.Namespace, o.Progress = f.workers, f.namespace(), line.print
	o.SourceRead = line.noteSource
	s, err := survey.NewSurveyor(cfg, o)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return s, line, nil
}

// each opens the operators one after the other, so that no more than one's caches are in memory, and has work do with
// them.
func each(ctx context.Context, s *survey.Surveyor, files []*load.File, note noteFunc,
	work func(*survey.Survey) error) error {
	for _, file := range files {
		noteMode(file, note)
		v, err := s.Open(ctx, file)
		if err != nil {
			return err
		}
		noteEmpty(v, note)
		noteUnknown(v, note)
		err = work(v)
		v.Close()
		if err != nil {
			return fmt.Errorf("operator %s: %w", file.Metadata.Name, err)
		}
	}
	return nil
}
