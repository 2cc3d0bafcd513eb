package cli

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newGenerate is the parent of commands that print something made from configs.
func newGenerate(streams command.IO) *cobra.Command {
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
		newGenerateCRD(streams),
		newGenerateRBAC(streams),
		newGenerateFlowSchema(streams),
		newGeneratePolicy(streams),
		newGenerateValidations(streams),
		newGenerateStatus(streams),
		newGenerateConversion(streams),
		newGenerateArgoCD(streams),
		newGenerateFlux(streams),
		newGenerateChart(streams),
		newGenerateOLM(streams),
	)
	return cmd
}

// versionHead is the comment above what is pasted into a kind's CustomResourceDefinition: whose it is, and where it goes.
func versionHead(kind schema.GroupVersionKind, operators []string) string {
	return fmt.Sprintf("# %s of %s, for operator %s:\n# to be merged into the entry of spec.versions whose name is %s.\n",
		kind.Kind, kind.GroupVersion(), strings.Join(operators, ", "), kind.Version)
}
