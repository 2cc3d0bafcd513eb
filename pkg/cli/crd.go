package cli

import (
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/spf13/cobra"
)

func newCRD(streams command.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Compare CustomResourceDefinitions, and show who uses which version",
		Long: `Help with new versions of a custom kind: what a change of its CustomResourceDefinition
means for stored objects, clients and configs, and who still writes an old version.`,
		Example: `  corollary crd diff old/ new/
  corollary crd usage crontabs.example.com`,
		Args: command.NoArguments("the commands are diff and usage"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return command.Usagef("no command is given: the commands are diff and usage")
		},
	}
	cmd.AddCommand(newCRDDiff(streams), newCRDUsage(streams))
	return cmd
}
