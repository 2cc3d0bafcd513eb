package generate

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate/healthchecks"
)

type health struct {
	maker
	// text writes the file for one tool.
	text func(out *bytes.Buffer, list []healthchecks.Health) error
}

func newArgoCD(streams command.IO) *cobra.Command {
	o := &health{maker: maker{streams: streams}, text: healthchecks.WriteArgoCD}
	return o.describe("argocd-health", "Print the health checks of the watched kinds for Argo CD",
		`Print a health check in Lua for each kind that configs watch, as a patch of Argo CD's
ConfigMap argocd-cm. Without one, Argo CD considers a custom resource healthy as soon
as it exists.

Healthy: every operator of the kind says that it is ready. Degraded: somebody must
act. Suspended: it is paused. Progressing: everything else, such as a status of an
older generation, or no status yet.`,
		`  corollary generate argocd-health -c apps/ > health.yaml
  kubectl -n argocd patch configmap argocd-cm --patch-file health.yaml`)
}

func newFlux(streams command.IO) *cobra.Command {
	o := &health{maker: maker{streams: streams}, text: healthchecks.WriteFlux}
	return o.describe("flux-health", "Print the health checks of the watched kinds for Flux",
		`Print spec.healthCheckExprs for a Flux Kustomization that applies the kinds that
configs watch.

Flux reads the usual conditions (Ready, Reconciling, Stalled) by itself. The
expressions add what it cannot know: other names, several operators on one kind,
failures of a config without a name for Stalled, and that an object without a status
is not ready yet.`,
		`  corollary generate flux-health -c apps/ > health.yaml
  kubectl -n flux-system patch kustomization apps --type merge --patch-file health.yaml`)
}

func (o *health) describe(name, short, long, example string) *cobra.Command {
	return o.command(o.run, false, &cobra.Command{Use: name + " -c CONFIG", Short: short, Long: long, Example: example})
}

func (o *health) run() error {
	files, err := o.configs.Valid(o.streams)
	if err != nil {
		return err
	}
	list, silent := healthchecks.Of(files)
	for _, name := range silent {
		fmt.Fprintf(o.streams.Err,
			"note: operator %s writes no status (status.enabled is false): its upstreams have no health\n", name)
	}
	if len(list) == 0 {
		return fmt.Errorf("no operator of %s writes a status, so there is no health to check",
			command.Count(len(files), "config"))
	}
	var out bytes.Buffer
	if err := o.text(&out, list); err != nil {
		return err
	}
	return o.write("the health checks", out.Bytes())
}
