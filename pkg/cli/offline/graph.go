package offline

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/graph"
)

type graphOptions struct {
	streams command.IO
	configs command.Configs
	crds    []string
	drawing command.Drawing
}

func newGraph(streams command.IO) *cobra.Command {
	o := &graphOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "graph -c CONFIG",
		Short: "Draw what follows from what in configs, without a cluster",
		Long: `Draw the kinds of configs: what is watched, the inputs, the downstreams with what
decides whether they exist, which of them come first or are read by others, what
deletes them, and which config watches what another one makes.

svg and html are written into a file, mermaid and dot to standard output. A file of
the same name is replaced. The html page has no script and loads nothing.

"corollary why -o svg" draws the objects that exist, with their states.`,
		Example: `  # Draw all configs of a directory into graph.svg
  corollary graph -c configs/

  # For a README: Git hosts draw it in a block of the language mermaid
  corollary graph -c app.yaml -o mermaid

  # With other colors or another layout
  corollary graph -c app.yaml -o dot | dot -Tpng > app.png`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.configs.Bind(cmd)
	command.BindCRDs(cmd, &o.crds)
	o.drawing.Bind(cmd, "Output format: svg, html, mermaid, or dot")
	return cmd
}

func (o *graphOptions) run(ctx context.Context) error {
	pipelines, err := o.configs.PipelinesOffline(o.streams, o.crds)
	if err != nil {
		return err
	}
	return o.drawing.Draw(ctx, o.streams.Out, graph.OfConfigs(pipelines))
}
