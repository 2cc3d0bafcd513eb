package offline

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/graph"
)

type graphOptions struct {
	streams command.IO
	configs command.Configs
	crds    []string
	format  command.Choice
	file    string
}

// The formats of graph.
const (
	svg     = "svg"
	page    = "html"
	mermaid = "mermaid"
	dot     = "dot"
)

func newGraph(streams command.IO) *cobra.Command {
	o := &graphOptions{streams: streams, format: command.Choice{Words: []string{svg, page, mermaid, dot}}}
	cmd := &cobra.Command{
		Use:   "graph -c CONFIG",
		Short: "Draw what follows from what in configs, without a cluster",
		Long: `Draw the kinds of configs: what is watched, the inputs, the downstreams with what
decides whether they exist, which of them come first or are read by others, what
deletes them, and which config watches what another one makes.

svg and html are written into a file, mermaid and dot to standard output. A file of
the same name is replaced. The html page has no script and loads nothing.`,
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
	command.BindChoice(cmd, &o.format, "output", "o", "Output format: svg, html, mermaid, or dot")
	cmd.Flags().StringVar(&o.file, "file", "",
		"File to write, or - for standard output (default graph.svg or graph.html, and standard output for the others)")
	return cmd
}

func (o *graphOptions) run(ctx context.Context) error {
	pipelines, err := o.configs.PipelinesOffline(o.streams, o.crds)
	if err != nil {
		return err
	}
	text, err := o.draw(ctx, graph.OfConfigs(pipelines))
	if err != nil {
		return err
	}
	isPicture := o.format.Value == svg || o.format.Value == page
	switch {
	case o.file == "-", o.file == "" && !isPicture:
		_, err = o.streams.Out.Write(text)
		return err
	case o.file == "":
		o.file = "graph." + o.format.Value
	}
	if err := os.WriteFile(o.file, text, 0o644); err != nil {
		return fmt.Errorf("writing the graph: %w", err)
	}
	fmt.Fprintln(o.streams.Out, o.file)
	return nil
}

func (o *graphOptions) draw(ctx context.Context, g *graph.Graph) ([]byte, error) {
	switch o.format.Value {
	case svg:
		return g.SVG(ctx)
	case page:
		return g.HTML(ctx)
	case mermaid:
		return []byte(g.Mermaid()), nil
	default:
		return []byte(g.DOT()), nil
	}
}
