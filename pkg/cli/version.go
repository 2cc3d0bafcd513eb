package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

func newVersion(streams command.IO) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, revision, date and Go version",
		Example: `  corollary version`,
		Args:    command.NoArguments("version takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			b := command.Build()
			_, err := fmt.Fprintf(streams.Out, "Version:  %s\nRevision: %s\nDate:     %s\nGo:       %s\n",
				b.Version, b.Revision, b.Date, b.Go)
			if err != nil {
				return fmt.Errorf("writing the version: %w", err)
			}
			return nil
		},
	}
}
