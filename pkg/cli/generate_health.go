package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type generateHealthOptions struct {
	streams command.IO
	configs command.Configs
	// write prints the file for one tool.
	write func(out *bytes.Buffer, list []generate.Health) error
}

func newGenerateArgoCD(streams command.IO) *cobra.Command {
	o := &generateHealthOptions{streams: streams, write: writeArgoCD}
	return o.command("argocd-health", "Print the health checks of the watched kinds for Argo CD",
		`Print a health check in Lua for each kind that configs watch, as a patch of Argo CD's
ConfigMap argocd-cm. Without one, Argo CD considers a custom resource healthy as soon
as it exists.

Healthy: every operator of the kind says that it is ready. Degraded: somebody must
act. Suspended: it is paused. Progressing: everything else, such as a status of an
older generation, or no status yet.`,
		`  corollary generate argocd-health -c apps/ > health.yaml
  kubectl -n argocd patch configmap argocd-cm --patch-file health.yaml`)
}

func newGenerateFlux(streams command.IO) *cobra.Command {
	o := &generateHealthOptions{streams: streams, write: writeFlux}
	return o.command("flux-health", "Print the health checks of the watched kinds for Flux",
		`Print spec.healthCheckExprs for a Flux Kustomization that applies the kinds that
configs watch.

Flux reads the usual conditions (Ready, Reconciling, Stalled) by itself. The
expressions add what it cannot know: other names, several operators on one kind,
failures of a config without a name for Stalled, and that an object without a status
is not ready yet.`,
		`  corollary generate flux-health -c apps/ > health.yaml
  kubectl -n flux-system patch kustomization apps --type merge --patch-file health.yaml`)
}

func (o *generateHealthOptions) command(name, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{Use: name + " -c CONFIG", Short: short, Long: long, Example: example,
		Args: command.NoArguments("configs are named with -c"),
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.configs.Bind(cmd)
	return cmd
}

func (o *generateHealthOptions) run() error {
	files, problems, err := o.configs.Load(o.streams)
	if err := command.Refuse(o.streams, problems, err); err != nil {
		return err
	}
	list, silent := generate.HealthOf(files)
	for _, name := range silent {
		fmt.Fprintf(o.streams.Err, "note: operator %s writes no status (status.enabled is false): its upstreams have no health\n", name)
	}
	if len(list) == 0 {
		return fmt.Errorf("no operator of %s writes a status, so there is no health to check", command.Count(len(files), "config"))
	}
	var out bytes.Buffer
	if err := o.write(&out, list); err != nil {
		return err
	}
	if _, err := o.streams.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the health checks: %w", err)
	}
	return nil
}

func writeArgoCD(out *bytes.Buffer, list []generate.Health) error {
	data := map[string]any{}
	for _, h := range list {
		script, err := h.ArgoCD()
		if err != nil {
			return err
		}
		data[h.ArgoCDKey()] = script
	}
	out.WriteString("# For the ConfigMap argocd-cm in Argo CD's namespace: the health of a resource.\n")
	text, err := yamltext.Of(map[string]any{"data": data})
	out.WriteString(text)
	return err
}

func writeFlux(out *bytes.Buffer, list []generate.Health) error {
	var entries []any
	var standard []string
	for _, h := range list {
		entries = append(entries, h.Flux())
		if h.Standard() {
			standard = append(standard, h.Kind.Kind)
		}
	}
	out.WriteString("# For a Kustomization (kustomize.toolkit.fluxcd.io) that applies these kinds; it needs spec.wait or spec.healthChecks.\n")
	if len(standard) > 0 {
		fmt.Fprintf(out, "# The conditions of %s have the usual names, which Flux reads without this too.\n", strings.Join(standard, ", "))
	}
	text, err := yamltext.Of(map[string]any{"spec": map[string]any{"healthCheckExprs": entries}})
	out.WriteString(text)
	return err
}
