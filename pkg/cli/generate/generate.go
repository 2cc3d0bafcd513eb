// Package generate is the command generate: its commands print what pkg/generate makes of configs.
package generate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
)

// New is the parent of commands that print something made from configs.
func New(streams command.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate RBAC, policies and other manifests",
		Example: `  # The status of an existing CustomResourceDefinition
  corollary generate crd-status -c app.yaml

  # The RBAC rules that it needs
  corollary generate rbac -c app.yaml -n platform

  # Its rules as an admission policy, so that the API server refuses what breaks them
  corollary generate policy -c app.yaml --crds crd.yaml --service-account platform/corollary`,
	}
	// Without one, cobra answers a word that is not a command with help and success.
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return command.Usagef("%s", command.UnknownCommand(cmd, args))
	}
	cmd.AddCommand(
		newCRD(streams),
		newRBAC(streams),
		newFlowSchema(streams),
		newPolicy(streams),
		newValidations(streams),
		newStatus(streams),
		newConversion(streams),
		newArgoCD(streams),
		newFlux(streams),
		newChart(streams),
		newOLM(streams),
	)
	return cmd
}

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
	m.output.Bind(cmd, "Output format: yaml, with comments, or json or kyaml, without", command.YAML, command.JSON, command.KYAML)
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
	text, err := generate.Text(head, list)
	if err != nil {
		return err
	}
	return m.write(what, text)
}
