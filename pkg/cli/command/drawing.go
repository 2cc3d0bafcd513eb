package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/graph"
)

// Drawing is the flags -o and --file of commands that draw graphs.
type Drawing struct {
	Choice
	file string
}

// The formats of a drawing.
const (
	svg     = "svg"
	page    = "html"
	mermaid = "mermaid"
	dot     = "dot"
)

// Bind adds the flags. formats are those of -o that are not a drawing; the first of all is the default.
func (d *Drawing) Bind(cmd *cobra.Command, usage string, formats ...string) {
	d.Words = slices.Concat(formats, []string{svg, page, mermaid, dot})
	BindChoice(cmd, &d.Choice, "output", "o", usage)
	cmd.Flags().StringVar(&d.file, "file", "",
		"File for the picture, or - for standard output (default graph.svg or graph.html; mermaid and dot are printed)")
}

// Check refuses a file for what is not a drawing.
func (d *Drawing) Check() error {
	if d.file != "" && !slices.Contains([]string{svg, page, mermaid, dot}, d.Value) {
		return Usagef("--file is for pictures: add -o svg, or leave it out")
	}
	return nil
}

// Draw writes a graph in the format of -o, into its file, whose name it prints, or to w.
func (d *Drawing) Draw(ctx context.Context, w io.Writer, g *graph.Graph) error {
	text, err := d.text(ctx, g)
	if err != nil {
		return err
	}
	isPicture := d.Value == svg || d.Value == page
	if d.file == "-" || d.file == "" && !isPicture {
		_, err = w.Write(text)
		return err
	}
	name := d.file
	if name == "" {
		name = "graph." + d.Value
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return fmt.Errorf("writing the graph: %w", err)
	}
	_, err = fmt.Fprintln(w, name)
	return err
}

func (d *Drawing) text(ctx context.Context, g *graph.Graph) ([]byte, error) {
	switch d.Value {
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
