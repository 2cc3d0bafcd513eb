package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/config"
)

func newSchema(streams IO) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of config files",
		Long: `Print the JSON Schema (draft 2020-12) of config files, for completion and checks in
editors. A comment in the first line of a config tells most editors where it is:

  # yaml-language-server: $schema=operator.schema.json`,
		Example: `  corollary schema > operator.schema.json`,
		Args:    noArguments("schema takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			if _, err := streams.Out.Write(config.Schema()); err != nil {
				return fmt.Errorf("writing the schema: %w", err)
			}
			return nil
		},
	}
}
