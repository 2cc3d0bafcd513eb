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
	BindFiles(cmd, crds, "crds", "", "File or directory with CustomResourceDefinitions; may be repeated",
		"yaml", "yml", "json")
}

// BindUpstreams adds the flag that names custom resources.
func BindUpstreams(cmd *cobra.Command, files *[]string) {
	BindFiles(cmd, files, "filename", "f",
		"File with custom resources, a directory of them, or - for standard input; may be repeated",
		"yaml", "yml", "json")
}

// BindFiles adds a flag that names files, of which the shell offers those with the extensions.
func BindFiles(cmd *cobra.Command, files *[]string, name, short, usage string, extensions ...string) {
	cmd.Flags().StringArrayVarP(files, name, short, nil, usage)
	CompleteFiles(cmd, name, extensions...)
}

// CompleteFiles has the shell offer files with these extensions for a flag.
func CompleteFiles(cmd *cobra.Command, flag string, extensions ...string) {
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string,
		string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
