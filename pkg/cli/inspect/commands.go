// Package inspect is the commands that show what the operators of configs would do in a cluster: plan, get, why and
// export. They print what pkg/survey finds.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// Commands returns the commands.
func Commands(streams command.IO) []*cobra.Command {
	return []*cobra.Command{newPlan(streams), newGet(streams), newWhy(streams), newExport(streams), newRollout(streams)}
}
