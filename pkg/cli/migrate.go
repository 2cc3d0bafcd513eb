package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/migrate"
)

type migrateOptions struct {
	streams    IO
	connection connection
	leaving    []string
	manager    string
	dryRun     bool
}

func newMigrate(streams IO) *cobra.Command {
	o := &migrateOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "migrate CRD",
		Short: "Rewrite stored objects in the version that is stored now",
		Long: `Rewrite every object of a custom kind in the version that its
CustomResourceDefinition stores now, so that an older version can be removed. At the
end status.storedVersions names that version alone.

Managers that applied objects in a version that is about to be removed are moved to
the stored version as well: without that, their next apply would fail. Name these
versions with --leaving; versions that are not served any more count among them.

The command is safe beside operators and other writers. An object that the API
server refuses does not stop the others: it is reported at the end, the exit code
is 1, and status.storedVersions stays as it is. Run an interrupted migration again.`,
		Example: `  # What there is to do
  corollary migrate crontabs.example.com --dry-run

  # Before v1beta1 is removed
  corollary migrate crontabs.example.com --leaving v1beta1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !strings.Contains(args[0], ".") {
				return usagef("name one CustomResourceDefinition, such as crontabs.example.com")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return o.run(ctx, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.leaving, "leaving", nil, "Version that is about to be removed; may be repeated")
	flags.StringVar(&o.manager, "field-manager", "corollary-migrate", "Field manager of the requests; it comes to own no field")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only print the plan")
	o.connection.bind(cmd, "")
	return cmd
}

func (o *migrateOptions) run(ctx context.Context, crd string) error {
	cfg, err := o.connection.rest()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	m := &migrate.Migration{Client: client, CRD: crd, FieldManager: o.manager, Leaving: o.leaving}
	p, err := m.Plan(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.streams.Out, "%s: %s, stored as %s", crd, count(int(p.Objects), "object"), p.Stored)
	if len(p.Before) > 0 {
		fmt.Fprintf(o.streams.Out, "; some may be stored as %s", strings.Join(p.Before, ", "))
	}
	fmt.Fprintln(o.streams.Out)
	if leaving := p.Leaving(); len(leaving) > 0 {
		fmt.Fprintf(o.streams.Out, "managers of %s become managers of %s\n", strings.Join(leaving, ", "), p.Stored)
	}
	if o.dryRun {
		return nil
	}
	r, err := m.Run(ctx, p)
	if r != nil {
		fmt.Fprintf(o.streams.Out, "%s rewritten, managers of %d changed\n", count(r.Rewritten, "object"), r.Fixed)
		for _, refused := range r.Refusals {
			fmt.Fprintf(o.streams.Err, "%s: %v\n", refused.Object, refused.Err)
		}
	}
	switch {
	case err != nil:
		return err
	case len(r.Refusals) > 0:
		return fmt.Errorf(
			"%s could not be rewritten: fix them and run the command again; status.storedVersions is unchanged",
			count(len(r.Refusals), "object"),
		)
	}
	fmt.Fprintf(o.streams.Out, "status.storedVersions is [%s]\n", p.Stored)
	return nil
}
