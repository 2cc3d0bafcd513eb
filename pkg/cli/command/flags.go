package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// BindCRDs adds the flag by which offline commands learn of custom kinds.
func BindCRDs(cmd *cobra.Command, crds *[]string) {
	cmd.Flags().StringArrayVar(crds, "crds", nil, "File or directory with CustomResourceDefinitions; may be repeated")
	CompleteFiles(cmd, "crds", "yaml", "yml", "json")
}

// CompleteFiles has the shell offer files with these extensions for a flag.
func CompleteFiles(cmd *cobra.Command, flag string, extensions ...string) {
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	})
}

// Choice is a flag that takes one of a few words.
type Choice struct {
	Value string
	Words []string
}

var _ pflag.Value = &Choice{}

func (c *Choice) String() string { return c.Value }

// Type is what help shows for the value.
func (c *Choice) Type() string { return "string" }

// Set takes one of the words.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.Words, s) {
		return fmt.Errorf("valid values are %s", spelling.Either(c.Words))
	}
	c.Value = s
	return nil
}

// BindChoice adds a choice as a flag whose words the shell completes; the first word is the default.
func BindChoice(cmd *cobra.Command, c *Choice, name, short, usage string) {
	c.Value = c.Words[0]
	cmd.Flags().VarP(c, name, short, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.Words, cobra.ShellCompDirectiveNoFileComp))
}
