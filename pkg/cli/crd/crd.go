// Package crd is the command crd: what a change of CustomResourceDefinitions breaks, and who uses which version.
package crd

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// New returns the command crd, with those below it.
func New(streams command.IO) *cobra.Command {
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
	cmd.AddCommand(newDiff(streams), newUsage(streams))
	return cmd
}
