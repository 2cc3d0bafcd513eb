// Package operate is the commands for operators that run: confirm, reconcile, release, activation and shards.
package operate

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// Commands returns the commands.
func Commands(streams command.IO) []*cobra.Command {
	return []*cobra.Command{newConfirm(streams), newReconcile(streams), newRelease(streams),
		newActivation(streams), newShards(streams)}
}
