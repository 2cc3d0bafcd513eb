// Package generate is the command generate: its commands print what pkg/generate makes of configs.
package generate

import (
	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// New is the parent of commands that print something made from configs.
func New(streams command.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate RBAC, policies and other manifests",
		Example: `  # The status of an existing CustomResourceDefinition
  corollary generate crd-status -c app.yaml

  # The RBAC rules that it needs
  corollary generate rbac -c app.yaml -n platform

  # Its rules as an admission policy, so that the API server refuses what breaks them
  corollary generate policy -c app.yaml --crds crd.yaml --service-account platform/corollary`,
	}
	// Without one, cobra answers a word that is not a command with help and success.
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return command.Usagef("%s", command.UnknownCommand(cmd, args))
	}
	cmd.AddCommand(
		newCRD(streams),
		newRBAC(streams),
		newFlowSchema(streams),
		newPolicy(streams),
		newValidations(streams),
		newStatus(streams),
		newConversion(streams),
		newArgoCD(streams),
		newFlux(streams),
		newChart(streams),
		newOLM(streams),
	)
	return cmd
}
