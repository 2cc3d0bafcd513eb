// Package stored is the commands about what a cluster stores: backup, restore and migrate.
package stored

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// Commands returns the commands.
func Commands(streams command.IO) []*cobra.Command {
	return []*cobra.Command{newBackup(streams), newRestore(streams), newMigrate(streams)}
}
