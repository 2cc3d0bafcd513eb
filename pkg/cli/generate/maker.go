package generate

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// maker is a command that prints what it makes of configs.
type maker struct {
	streams command.IO
	configs command.Configs
	crds    []string
	output  command.Output
}

// command adds to a command what all have: configs, definitions where it has a use for them, and what it runs.
func (m *maker) command(run func() error, withCRDs bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = command.NoArguments("configs are named with -c")
	cmd.RunE = func(*cobra.Command, []string) error { return run() }
	m.configs.Bind(cmd)
	if withCRDs {
		cmd.Args = command.NoArguments("configs are named with -c, CustomResourceDefinitions with --crds")
		command.BindCRDs(cmd, &m.crds)
	}
	return cmd
}

// bindOutput adds -o, for a command that prints objects.
func (m *maker) bindOutput(cmd *cobra.Command) {
	m.output.Bind(cmd, "Output format: yaml, with comments, or json or kyaml, without", command.YAML,
		command.JSON, command.KYAML)
}

// describedBy are the definitions of the kinds that loaded configs describe. It prints the rules that they lack to
// standard error.
func (m *maker) describedBy(files []*load.File, source kinds.Source) ([]*generate.Definition, error) {
	if !slices.ContainsFunc(files, func(f *load.File) bool { return f.SpecSchema() != nil }) {
		return nil, nil
	}
	list, problems, err := compile.All(files, nil, compile.Options{Kinds: source})
	if err := command.Refuse(m.streams, problems, err); err != nil {
		return nil, err
	}
	described, err := generate.Definitions(list)
	for _, d := range described {
		command.WriteNotes(m.streams, d.Notes)
	}
	return described, err
}

// write prints a text; what names it in an error.
func (m *maker) write(what string, text []byte) error {
	if _, err := m.streams.Out.Write(text); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}

// print prints objects in the format of -o; as YAML with comments, the head above all of them.
func (m *maker) print(what, head string, list []generate.Manifest) error {
	if m.output.Value != command.YAML {
		var documents []map[string]any
		for _, made := range list {
			documents = append(documents, made.Object)
		}
		return m.output.Documents(m.streams.Out, documents)
	}
	text, err := manifests(head, list)
	if err != nil {
		return err
	}
	return m.write(what, text)
}
