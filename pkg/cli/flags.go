package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// bindCRDs adds the flag by which offline commands learn of custom kinds.
func bindCRDs(cmd *cobra.Command, crds *[]string) {
	cmd.Flags().StringArrayVar(crds, "crds", nil, "File or directory with CustomResourceDefinitions; may be repeated")
	completeFiles(cmd, "crds", "yaml", "yml", "json")
}

// completeFiles has the shell offer files with these extensions for a flag.
func completeFiles(cmd *cobra.Command, flag string, extensions ...string) {
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	})
}

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	words []string
}

var _ pflag.Value = &choice{}

func (c *choice) String() string { return c.value }

// Type is what help shows for the value.
func (c *choice) Type() string { return "string" }

// Set takes one of the words.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("valid values are %s", either(c.words))
	}
	c.value = s
	return nil
}

// bindChoice adds a choice as a flag whose words the shell completes; the first word is the default.
func bindChoice(cmd *cobra.Command, c *choice, name, short, usage string) {
	c.value = c.words[0]
	cmd.Flags().VarP(c, name, short, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp))
}
