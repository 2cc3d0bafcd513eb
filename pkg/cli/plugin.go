package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which kubectl looks for executables on PATH: the first makes `kubectl corollary` work, the second is
// asked what the shell may offer after it. The binary answers to both, so that a link is all that either takes.
const (
	pluginName    = "kubectl-corollary"
	completerName = "kubectl_complete-corollary"
)

// asPlugin makes the commands below root speak of themselves as kubectl corollary where the program was started under
// one of a plugin's names. It returns the arguments to run with: kubectl hands the completer the words alone.
func asPlugin(root *cobra.Command, program string, args []string) []string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if name != pluginName && name != completerName {
		return args
	}
	root.Use = pluginName
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl corollary"}
	speakAsPlugin(root)
	if name == completerName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// called finds the command's name where a text calls it: at the beginning of an example's line, or after a pipe.
var called = regexp.MustCompile(`(?m)(^ *|\| )corollary `)

func speakAsPlugin(cmd *cobra.Command) {
	cmd.Example = called.ReplaceAllString(cmd.Example, "${1}kubectl corollary ")
	for _, c := range cmd.Commands() {
		speakAsPlugin(c)
	}
}
