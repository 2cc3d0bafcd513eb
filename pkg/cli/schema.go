package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/schema"
)

func newSchema(streams command.IO) *cobra.Command {
	schemas := map[string]func() []byte{
		config.Kind: schema.Operator, config.ConventionsKind: schema.Conventions,
		conversion.ConversionKind: schema.Conversion,
		lock.ActivationKind:       schema.Activation,
	}
	kind := command.Choice{Words: []string{config.Kind, config.ConventionsKind,
		conversion.ConversionKind, lock.ActivationKind}}
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of config files",
		Long: `Print the JSON Schema (draft 2020-12) of config files, for completion and checks in
editors: of operators, of the files that a conventionsFile names, of conversions, or of
activations. A comment in the first line of a file gives most editors its schema:

  # yaml-language-server: $schema=operator.schema.json`,
		Example: `  corollary schema > operator.schema.json
  corollary schema --kind Conventions > conventions.schema.json`,
		Args: command.NoArguments("the kind of file is given with --kind"),
		RunE: func(*cobra.Command, []string) error {
			if _, err := streams.Out.Write(schemas[kind.Value]()); err != nil {
				return fmt.Errorf("writing the schema: %w", err)
			}
			return nil
		},
	}
	command.BindChoice(cmd, &kind, "kind", "", "Which files it is for: Operator, Conventions, Conversion or Activation")
	return cmd
}
