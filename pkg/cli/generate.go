package cli

import "github.com/spf13/cobra"

// newGenerate is the parent of commands that print something made from configs.
func newGenerate(streams IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print what else a config needs, to be kept beside it",
		Example: `  # The status of an existing CustomResourceDefinition
  corollary generate crd-status -c app.yaml

  # The rights that it takes
  corollary generate rbac -c app.yaml -n platform

  # Its rules, for the API server to refuse what breaks them
  corollary generate policy -c app.yaml --crds crd.yaml --service-account platform/corollary`,
	}
	// Without one, cobra answers a word that is no command with help and success.
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return usagef("%s", unknownCommand(cmd, args))
	}
	cmd.AddCommand(newGenerateRBAC(streams), newGeneratePolicy(streams), newGenerateValidations(streams), newGenerateStatus(streams),
		newGenerateArgoCD(streams), newGenerateFlux(streams), newGenerateChart(streams), newGenerateOLM(streams))
	return cmd
}
