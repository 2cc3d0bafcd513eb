package crd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

type usageOptions struct {
	streams    command.IO
	connection command.Connection
	output     command.Output
}

func newUsage(streams command.IO) *cobra.Command {
	o := &usageOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "usage CRD",
		Short: "Show which versions of a custom kind objects were written in, and by whom",
		Long: `Count the objects of a custom kind by the versions that their managedFields name:

  LAST     objects whose newest write was in this version
  OBJECTS  objects on which a field manager has fields that it wrote in this version

and list these field managers. A version that no object names, and in which none is
stored, can be removed; corollary migrate rewrites what still names it.

Clients that only read do not appear. For them, see the API server's metric
apiserver_requested_deprecated_apis, once the version is deprecated.

Only metadata is read, 500 objects at a time. Nothing is written.`,
		Example: `  corollary crd usage crontabs.example.com

  # Who still writes v1beta1
  corollary crd usage crontabs.example.com -o json | jq -r '.managers[] | select(.version == "v1beta1") | .manager'`,
		Args: command.OneDefinition,
		RunE: command.RunUntilSignal(o.run),
	}
	o.output.Bind(cmd, "Output format: text, or json (documented in docs/cli.md)", command.Text, command.JSON)
	o.connection.Bind(cmd, "")
	return cmd
}

func (o *usageOptions) run(ctx context.Context, args []string) error {
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	cfg.WarningHandler = rest.NoWarnings{} // that a version is deprecated is what is shown
	definitions, err := command.DynamicFor(cfg)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	crd, err := kinds.ReadDefinition(ctx, definitions, args[0])
	if err != nil {
		return err
	}
	u, err := migrate.UsageOf(ctx, objects, crd)
	if err != nil {
		return err
	}
	return o.output.Print(o.streams.Out, u, func(w io.Writer) error { return printUsage(w, u) })
}

// stateOf says in words what a version is.
func stateOf(v *migrate.VersionUsage) string {
	if !v.Defined {
		return "not defined"
	}
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{v.Storage, "storage"}, {v.Stored && !v.Storage, "stored"}, {v.Served, "served"},
		{!v.Served, "not served"}, {v.Deprecated, "deprecated"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

func printUsage(out io.Writer, u *migrate.Usage) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "VERSION\tSTATE\tLAST\tOBJECTS")
	for _, v := range u.Versions {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", v.Version, stateOf(v), v.Last, v.Objects)
	}
	if u.Unknown > 0 {
		fmt.Fprintf(w, "(unknown)\t\t%d\t%d\n", u.Unknown, u.Unknown)
	}
	if len(u.Managers) > 0 {
		fmt.Fprintln(w, "\nVERSION\tMANAGER\tOPERATION\tOBJECTS\tTIME\tEXAMPLE")
	}
	for _, m := range u.Managers {
		at := ""
		if !m.Last.IsZero() {
			at = m.Last.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", m.Version, command.EscapeControl(m.Manager),
			m.Operation, m.Objects, at, m.Example)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the usage: %w", err)
	}
	return nil
}
