package cli

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// newHelp is the help command. The library's own answers a word that is not a command with success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show how a command is used",
		Example: `  corollary help render`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() && len(args) == 0 {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, _, err := cmd.Root().Find(args)
			if err != nil {
				return command.Usagef("%s", command.UnknownCommand(cmd.Root(), args))
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// nameShell makes "completion" without a shell, or with one that is not known, an error instead of a success.
func nameShell(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args = nil
		c.RunE = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("no shell is named: bash, zsh, fish or powershell")
			}
			return command.Usagef("unknown shell %q: use bash, zsh, fish or powershell", args[0])
		}
	}
}
