// Package offline is the commands for those who write configs: init, render, test and graph. None of them has a client
// for an API server.
package offline

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// Commands returns the commands.
func Commands(streams command.IO) []*cobra.Command {
	return []*cobra.Command{newInit(streams), newRender(streams), newTest(streams), newGraph(streams)}
}
