package command

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
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Configs name the configs that a command is about.
type Configs struct {
	Files []string
	Set   []string
}

// Bind adds the flags that name and change configs.
func (f *Configs) Bind(cmd *cobra.Command) {
	f.BindFiles(cmd)
	cmd.Flags().StringArrayVar(&f.Set, "set", nil,
		"Override one value: OPERATOR:.path=value, the value as YAML; may be repeated. "+
			"Environment variables "+load.EnvPrefix+"<anything> hold the same and come before these")
	_ = cmd.RegisterFlagCompletionFunc("set", cobra.NoFileCompletions)
}

// BindFiles adds the flag that names configs.
func (f *Configs) BindFiles(cmd *cobra.Command) {
	BindFiles(cmd, &f.Files, "config", "c", "Config file, a directory of them, or - for standard input; may be repeated",
		"yaml", "yml")
}

// FindNearest names the config of a command that was given none: the nearest one from the working directory upward, as
// for cases. That there is none is a wrong use of the command.
func (f *Configs) FindNearest() error {
	if len(f.Files) > 0 {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("looking for %s: %w", cases.NearestConfig, err)
	}
	if up, found := cases.FindNearest(dir); found {
		f.Files = []string{filepath.Join(up, cases.NearestConfig)}
		return nil
	}
	return Usagef("no config is given: add -c FILE, or -c DIRECTORY")
}

// Load reads the configs; if none is named, the nearest one.
func (f *Configs) Load(streams IO) ([]*load.File, config.Errors, error) {
	if err := f.FindNearest(); err != nil {
		return nil, nil, err
	}
	files, errs := load.Operators(load.Options{Files: f.Files, Set: f.Set, Env: streams.Env,
		Stdin: streams.In, Program: Build().Version})
	return files, errs, nil
}

// Valid reads the configs and prints what is wrong with them to standard error.
func (f *Configs) Valid(streams IO) ([]*load.File, error) {
	files, problems, err := f.Load(streams)
	return files, Refuse(streams, problems, err)
}

// Offline reads configs, and what is known of kinds from these and other files alone. It prints errors of configs to
// standard error.
func (f *Configs) Offline(streams IO, crds []string) ([]*load.File, kinds.Source, error) {
	source, err := kinds.Offline(crds...)
	if err != nil {
		return nil, nil, err
	}
	files, problems, err := f.Load(streams)
	return files, compile.WithDescribed(files, source), Refuse(streams, problems, err)
}

// PipelinesOffline is offline for commands that need pipelines.
func (f *Configs) PipelinesOffline(streams IO, crds []string) ([]*compile.Pipeline, error) {
	list, err := f.CompileOffline(streams, crds)
	return PipelinesOf(list), err
}

// CompileOffline is compileOffline, with the file of each pipeline.
func (f *Configs) CompileOffline(streams IO, crds []string) ([]compile.Compiled, error) {
	source, err := kinds.Offline(crds...)
	if err != nil {
		return nil, err
	}
	files, problems, err := f.Load(streams)
	if err != nil {
		return nil, err
	}
	list, problems, err := compile.All(files, problems, compile.Options{Kinds: source})
	return list, Refuse(streams, problems, err)
}

// PipelinesOf are the pipelines of compiled configs, in their order.
func PipelinesOf(list []compile.Compiled) []*compile.Pipeline {
	var pipelines []*compile.Pipeline
	for _, c := range list {
		pipelines = append(pipelines, c.Pipeline)
	}
	return pipelines
}

// ReadsStdin reports whether a config comes from standard input.
func (f *Configs) ReadsStdin() bool { return slices.Contains(f.Files, "-") }

// Repeatable returns streams whose standard input, where a config comes from it, can be read several times.
func (f *Configs) Repeatable(streams IO) (func() IO, error) {
	if !f.ReadsStdin() || streams.In == nil {
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

// LoadConversions reads the conversions among the configs.
func (f *Configs) LoadConversions(streams func() IO) ([]*load.ConversionFile, config.Errors, error) {
	files, problems, err := f.Load(streams())
	if err != nil {
		return nil, nil, err
	}
	list, more := f.ConversionsBeside(files, streams())
	return list, append(problems, more...), nil
}

// ConversionsBeside returns the conversions of operators that are loaded, and those in files beside them.
func (f *Configs) ConversionsBeside(operators []*load.File, streams IO) ([]*load.ConversionFile, config.Errors) {
	return load.Conversions(load.Options{Files: f.Files, Stdin: streams.In}, operators)
}

// ValidConversions returns the conversions as ConversionsBeside does, and prints what is wrong with them to standard
// error.
func (f *Configs) ValidConversions(operators []*load.File, streams IO) ([]*load.ConversionFile, error) {
	list, problems := f.ConversionsBeside(operators, streams)
	return list, Refuse(streams, problems, nil)
}

// ActivationsBeside returns the activations in the files, with the operators that follow them. identity, if it is not
// empty, replaces theirs. An operator whose activation is missing or has errors is not valid any more.
func (f *Configs) ActivationsBeside(
	operators []*load.File, streams IO, identity string,
) ([]*load.ActivationFile, config.Errors) {
	return load.Activations(load.Options{Files: f.Files, Stdin: streams.In, Identity: identity}, operators)
}
