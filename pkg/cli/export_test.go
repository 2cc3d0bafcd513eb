package cli

import "github.com/corollary-dev/corollary/pkg/cli/command"

// Connects reports whether a command has the flags of a connection to an API server.
func Connects(args []string) bool {
	cmd, _, err := newRoot(command.IO{}).Find(args)
	return err == nil && cmd.Flags().Lookup("kubeconfig") != nil
}
