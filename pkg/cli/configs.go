package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cases"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// configFlags name the configs that a command is about.
type configFlags struct {
	files []string
	set   []string
}

func (f *configFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "config", "c", nil, "Config file, a directory of them, or - for standard input; may be repeated")
	flags.StringArrayVar(&f.set, "set", nil,
		"Override one value: OPERATOR:.path=value, the value as YAML; may be repeated. "+
			"Environment variables "+config.EnvPrefix+"<anything> hold the same and come before these")
	completeFiles(cmd, "config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("set", cobra.NoFileCompletions)
}

// findNearest names the config of a command that was given none: the nearest one from the working directory upward, as for cases.
// That there is none is a wrong use of the command.
func (f *configFlags) findNearest() error {
	if len(f.files) > 0 {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("looking for %s: %w", cases.NearestConfig, err)
	}
	if up, found := cases.FindNearest(dir); found {
		f.files = []string{filepath.Join(up, cases.NearestConfig)}
		return nil
	}
	return usagef("no config is given: add -c FILE, or -c DIRECTORY")
}

// load reads the configs; if none is named, the nearest one.
func (f *configFlags) load(streams IO) ([]*config.File, config.Errors, error) {
	if err := f.findNearest(); err != nil {
		return nil, nil, err
	}
	files, errs := config.Load(config.Options{Files: f.files, Set: f.set, Env: streams.Env, Stdin: streams.In, Program: build().Version})
	return files, errs, nil
}

// offline reads configs, and what is known of kinds from these and other files alone. It prints errors of configs to standard error.
func (f *configFlags) offline(streams IO, crds []string) ([]*config.File, kinds.Source, error) {
	source, err := kinds.Offline(crds...)
	if err != nil {
		return nil, nil, err
	}
	files, problems, err := f.load(streams)
	return files, pipeline.WithDescribed(files, source), refuse(streams, problems, err)
}

// compileOffline is offline for commands that need pipelines.
func (f *configFlags) compileOffline(streams IO, crds []string) ([]*pipeline.Pipeline, error) {
	list, err := f.compiledOffline(streams, crds)
	return pipelinesOf(list), err
}

// compiledOffline is compileOffline, with the file of each pipeline.
func (f *configFlags) compiledOffline(streams IO, crds []string) ([]pipeline.Compiled, error) {
	source, err := kinds.Offline(crds...)
	if err != nil {
		return nil, err
	}
	files, problems, err := f.load(streams)
	if err != nil {
		return nil, err
	}
	list, problems, err := pipeline.CompileAll(files, problems, pipeline.Options{Kinds: source})
	return list, refuse(streams, problems, err)
}

// definitions are the definitions of the kinds that loaded configs describe. It prints the rules that they lack to standard error.
func (f *configFlags) definitions(streams IO, files []*config.File, source kinds.Source) ([]*generate.Definition, error) {
	if !slices.ContainsFunc(files, func(f *config.File) bool { return f.SpecSchema() != nil }) {
		return nil, nil
	}
	list, problems, err := pipeline.CompileAll(files, nil, pipeline.Options{Kinds: source})
	if err := refuse(streams, problems, err); err != nil {
		return nil, err
	}
	definitions, err := generate.Definitions(list)
	for _, d := range definitions {
		writeNotes(streams, d.Notes)
	}
	return definitions, err
}

func pipelinesOf(list []pipeline.Compiled) []*pipeline.Pipeline {
	var pipelines []*pipeline.Pipeline
	for _, c := range list {
		pipelines = append(pipelines, c.Pipeline)
	}
	return pipelines
}

func (f *configFlags) readsStdin() bool { return slices.Contains(f.files, "-") }

// repeatable returns streams whose standard input, where a config comes from it, can be read several times.
func (f *configFlags) repeatable(streams IO) (func() IO, error) {
	if !f.readsStdin() || streams.In == nil {
		return func() IO { return streams }, nil
	}
	text, err := io.ReadAll(streams.In)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return func() IO {
		streams.In = bytes.NewReader(text)
		return streams
	}, nil
}
