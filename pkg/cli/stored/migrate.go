package stored

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

type migrateOptions struct {
	streams    command.IO
	connection command.Connection
	configs    command.Configs
	leaving    []string
	fill       []string
	manager    string
	backup     string
	rate       float32
	unproven   bool
	dryRun     bool
}

func newMigrate(streams command.IO) *cobra.Command {
	o := &migrateOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "migrate CRD",
		Short: "Rewrite stored objects in the version that is stored now",
		Long: `Rewrite every object of a custom kind in the version that its
CustomResourceDefinition stores now, so that an older version can be removed. At the
end status.storedVersions names that version alone.

Rewriting cannot be undone. So the command refuses to start if it could lose something:
without a webhook, if the stored version does not declare a field of another version;
with one, if no certificate proves the conversion. Give its config and certificate with
-c, or trust it with --unproven.

Managers that applied objects in a version that is about to be removed are moved to
the stored version as well: without that, their next apply would fail. Their fields are
converted by the conversion of -c. Name these versions with --leaving; versions that are
not served any more count among them.

With --fill, objects that lack a field get one, before the schema requires it.

A change of the definition has to be 5 seconds old, so that every API server stores what it
says: until then the command waits.

Operators and other writers may keep running. An object that the API server refuses
does not stop the others: it is reported at the end, the exit code is 1, and
status.storedVersions stays as it is. Run an interrupted migration again.`,
		Example: `  # Show the plan
  corollary migrate crontabs.example.com -c conversion.yaml -c certificate.yaml --dry-run

  # Before v1beta1 is removed
  corollary migrate crontabs.example.com -c conversion.yaml -c certificate.yaml \
    --leaving v1beta1 --backup crontabs.tar.zst

  # Before .spec.timeZone is required
  corollary migrate crontabs.example.com --fill '.spec.timeZone="UTC"'`,
		Args: command.OneDefinition,
		RunE: command.RunUntilSignal(o.run),
	}
	o.bind(cmd)
	return cmd
}

func (o *migrateOptions) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.configs.Bind(cmd)
	flags.StringArrayVar(&o.leaving, "leaving", nil, "Version that is about to be removed; may be repeated")
	flags.StringArrayVar(&o.fill, "fill", nil,
		"PATH=EXPRESSION: objects without that field get the value of the CEL expression over self; may be repeated")
	flags.StringVar(
		&o.manager,
		"field-manager",
		"corollary-migrate",
		"Field manager of the requests; it owns only the fields that are filled in",
	)
	flags.StringVar(&o.backup, "backup", "", "First write all objects to this directory or FILE.tar.zst")
	flags.Float32Var(&o.rate, "rate", migrate.DefaultRate,
		"Maximum number of objects to rewrite per second; 0 is no limit")
	flags.BoolVar(&o.unproven, "unproven", false, "Start even if the conversion is not proven, or loses something")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only print the plan")
	o.connection.Bind(cmd, "")
}

func (o *migrateOptions) run(ctx context.Context, args []string) error {
	if o.rate < 0 {
		return command.Usagef("--rate %v: it must not be negative; 0 is no limit", o.rate)
	}
	name := args[0]
	files, err := o.conversions()
	if err != nil {
		return err
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	client, err := command.DynamicFor(conversions.WithoutWarnings(cfg))
	if err != nil {
		return err
	}
	m := &migrate.Migration{
		Client: client, CRD: name, FieldManager: o.manager, Leaving: o.leaving, Fill: o.fill,
		Rate: o.rate, Progress: o.progress(),
		Settle: migrate.SettleTime,
	}
	crd, err := kinds.ReadDefinition(ctx, client, name)
	if err != nil {
		return err
	}
	c, errs := conversions.Of(files, crd)
	if len(errs) > 0 {
		return errs
	}
	if c != nil {
		m.Converter = c.Converter
	}
	p, err := m.Plan(ctx)
	if err != nil {
		return err
	}
	o.print(name, p)
	if err := c.Lossless(ctx, crd, p.Stored, p.Before); err != nil && !o.unproven {
		return err
	} else if err != nil {
		fmt.Fprintf(o.streams.Err, "warning: %v\n", err)
	}
	if o.dryRun {
		return nil
	}
	if err := o.save(ctx, cfg, client, name); err != nil {
		return fmt.Errorf("nothing is migrated, since the backup failed: %w", err)
	}
	r, err := m.Run(ctx, p)
	return o.report(p, r, err)
}

func (o *migrateOptions) conversions() ([]*load.ConversionFile, error) {
	if len(o.configs.Files) == 0 {
		return nil, nil
	}
	list, problems, err := o.configs.LoadConversions(func() command.IO { return o.streams })
	return list, command.Refuse(o.streams, problems, err)
}

func (o *migrateOptions) print(name string, p *migrate.Plan) {
	out := o.streams.Out
	fmt.Fprintf(out, "%s: %s, stored as %s", name, command.Count(int(p.Objects), "object"), p.Stored)
	if len(p.Before) > 0 {
		fmt.Fprintf(out, "; some may be stored as %s", strings.Join(p.Before, ", "))
	}
	fmt.Fprintln(out)
	if leaving := p.Leaving(); len(leaving) > 0 {
		fmt.Fprintf(out, "managers of %s become managers of %s\n", strings.Join(leaving, ", "), p.Stored)
	}
	if unconverted := p.Unconverted(); len(unconverted) > 0 {
		fmt.Fprintf(out, "no conversion of %s is known: managers of fields that %s does not have will own all fields that "+
			"no other manager "+
			"owns; "+
			"give the conversion with -c\n", strings.Join(unconverted, ", "), p.Stored)
	}
	if len(o.fill) > 0 {
		fmt.Fprintf(out, "%s: fields are filled in\n", command.Count(p.Lacking, "object"))
	}
	if seconds := float64(p.Objects) / float64(o.rate); o.rate > 0 && seconds >= 1 {
		fmt.Fprintf(out, "this takes at least %s, at %v objects a second\n", time.Duration(seconds)*time.Second, o.rate)
	}
}

// save takes the backup.
func (o *migrateOptions) save(ctx context.Context, cfg *rest.Config, client dynamic.Interface, name string) error {
	if o.backup == "" {
		fmt.Fprintln(o.streams.Out, "no backup is taken: --backup FILE.tar.zst would")
		return nil
	}
	b := backupOptions{streams: o.streams, crds: []string{name}, output: o.backup}
	return b.write(ctx, cfg, &backup.Backup{Client: client}, nil)
}

// progressInterval is how often a migration says how far it is.
const progressInterval = 10 * time.Second

// progress shows how far a migration is: a line that is written again and again at a terminal, otherwise one from time
// to time.
func (o *migrateOptions) progress() func(migrate.Progress) {
	terminal, last := command.AtTerminal(o.streams.Err), time.Now()
	interval := progressInterval
	if terminal {
		interval = 200 * time.Millisecond
	}
	return func(p migrate.Progress) {
		now := time.Now()
		if now.Sub(last) < interval && p.Left > 0 {
			return
		}
		last = now
		const width = 30
		filled := width * p.Done / max(p.Done+int(p.Left), 1)
		switch {
		case terminal && p.Left == 0:
			fmt.Fprint(o.streams.Err, "\r\x1b[K")
		case terminal:
			fmt.Fprintf(o.streams.Err, "\r\x1b[K[%s%s] %d of about %d, %d refused", strings.Repeat("=", filled),
				strings.Repeat(" ", width-filled),
				p.Done, p.Done+int(p.Left), p.Refused)
		case p.Left > 0:
			fmt.Fprintf(o.streams.Err, "%d of about %d objects, %d refused\n", p.Done, p.Done+int(p.Left), p.Refused)
		}
	}
}

func (o *migrateOptions) report(p *migrate.Plan, r *migrate.Result, err error) error {
	if r != nil {
		fmt.Fprintf(o.streams.Out, "%s rewritten, managers of %d changed", command.Count(r.Rewritten, "object"), r.Fixed)
		if r.Guessed > 0 {
			fmt.Fprintf(o.streams.Out, " (of %d without a conversion of their fields)", r.Guessed)
		}
		if len(o.fill) > 0 {
			fmt.Fprintf(o.streams.Out, ", fields of %d filled in", r.Filled)
		}
		fmt.Fprintln(o.streams.Out)
		for _, refused := range r.Refusals {
			fmt.Fprintf(o.streams.Err, "%s: %v\n", refused.Object, refused.Err)
		}
		if more := r.Refused - len(r.Refusals); more > 0 {
			fmt.Fprintf(o.streams.Err, "and %s more\n", command.Count(more, "object"))
		}
	}
	switch {
	case err != nil:
		return err
	case r.Refused > 0:
		return fmt.Errorf("%s could not be rewritten: fix them and run the command again; status.storedVersions is unchanged",
			command.Count(r.Refused, "object"))
	}
	fmt.Fprintf(o.streams.Out, "status.storedVersions is [%s]\n", p.Stored)
	return nil
}
