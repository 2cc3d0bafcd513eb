package stored

import (
	"context"
	"fmt"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/selection"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

type backupOptions struct {
	streams              command.IO
	configs              command.Configs
	connection           command.Connection
	crds, recipients     []string
	output               string
	downstreams, secrets bool
}

func newBackup(streams command.IO) *cobra.Command {
	o := &backupOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "backup {-c CONFIG | --crd NAME} -o {DIRECTORY | FILE.tar.zst}",
		Short: "Write custom resources, their status and definitions to a backup",
		Long: `Write the upstreams of configs, or every object of custom kinds, to a directory or a
.tar.zst file, with their status, managedFields and CustomResourceDefinitions; with
--downstreams also their downstreams. "corollary restore" restores them.

The objects of each kind are as they were at one resourceVersion. Files of objects that
did not change have the same bytes in the next backup, so that git or restic can keep a
directory; if nothing changed, the output stays as it is. Objects that are being
deleted are left out. The output file or directory appears once it is complete.

Secrets are left out unless --secrets is given, and are then encrypted with age for the
recipients. The rights to list the kinds and to get customresourcedefinitions are
needed.`,
		Example: `  # The upstreams of a config and all that follows from them
  corollary backup -c app.yaml --downstreams -o app.tar.zst

  # Custom kinds, to a directory that git keeps
  corollary backup --crd crontabs.example.com --crd widgets.example.com -o backup

  # Secrets too
  corollary backup -c app.yaml --downstreams --secrets --age-recipient age1… -o app.tar.zst`,
		Args: command.NoArguments("configs are named with -c, custom kinds with --crd"),
		RunE: command.RunUntilSignal(o.run),
	}
	o.configs.Bind(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.crds, "crd", nil,
		"CustomResourceDefinition whose objects are written, such as crontabs.example.com; may be repeated")
	flags.StringVarP(&o.output, "output", "o", "",
		"Directory or FILE.tar.zst to write (required); an earlier backup there is replaced")
	flags.BoolVar(&o.downstreams, "downstreams", false, "Write the downstreams of the configs too")
	flags.BoolVar(&o.secrets, "secrets", false, "Write Secrets among the downstreams too, encrypted")
	flags.StringArrayVar(&o.recipients, "age-recipient", nil,
		"age public key for which Secrets are encrypted; may be repeated")
	o.connection.Bind(
		cmd,
		"Write the objects of this namespace only, and their downstreams; by default of all namespaces that the config "+
			"watches",
	)
	return cmd
}

func (o *backupOptions) check() error {
	switch {
	case len(o.configs.Files) == 0 && len(o.crds) == 0:
		return command.Usagef("nothing to write is given: add -c FILE, or --crd NAME")
	case o.output == "":
		return command.Usagef("required flag --output is not set: name a directory or a FILE.tar.zst")
	case o.downstreams && len(o.configs.Files) == 0:
		return command.Usagef("--downstreams needs -c FILE")
	case o.secrets && len(o.recipients) == 0:
		return command.Usagef("--secrets needs --age-recipient: Secrets are only written encrypted; age-keygen makes a key")
	case !o.secrets && len(o.recipients) > 0:
		return command.Usagef("--age-recipient has no effect without --secrets")
	}
	for _, name := range o.crds {
		if !strings.Contains(name, ".") {
			return command.Usagef("--crd is %q: write the name of a CustomResourceDefinition, such as crontabs.example.com",
				name)
		}
	}
	return nil
}

func (o *backupOptions) run(ctx context.Context, _ []string) error {
	if err := o.check(); err != nil {
		return err
	}
	b := &backup.Backup{}
	if o.secrets {
		recipients, err := age.ParseRecipients(strings.NewReader(strings.Join(o.recipients, "\n")))
		if err != nil {
			return command.Usagef("--age-recipient: %v", err)
		}
		b.Recipients = recipients
	}
	var files []*load.File
	if len(o.configs.Files) > 0 {
		var err error
		if files, err = o.configs.Valid(o.streams); err != nil {
			return err
		}
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	if b.Client, err = command.DynamicFor(cfg); err != nil {
		return err
	}
	return o.write(ctx, cfg, b, files)
}

func (o *backupOptions) write(ctx context.Context, cfg *rest.Config, b *backup.Backup, files []*load.File) error {
	cluster, err := discovered.New(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	hasSecrets, err := selection.Select(ctx, selection.Options{Client: b.Client, Kinds: cluster,
		CRDs: o.crds, Downstreams: o.downstreams,
		Secrets: o.secrets, Namespace: o.connection.Overrides.Context.Namespace}, files, b)
	if err != nil {
		return err
	}
	if o.secrets && !o.downstreams && !hasSecrets() {
		return command.Usagef(
			"--secrets has no effect: no kind that is written is a Secret; --downstreams adds those that follow from upstreams")
	}
	m, written, err := b.Run(ctx, o.output)
	if err != nil {
		return err
	}
	if err := o.noteDropped(ctx, b); err != nil {
		return err
	}
	if hasSecrets() && !o.secrets {
		fmt.Fprintf(o.streams.Err, "note: Secrets are left out%s: add --secrets and --age-recipient\n", lostValues(files))
	}
	for _, name := range b.Unread {
		fmt.Fprintf(o.streams.Err, "note: %s: left out, though a status records such objects: they cannot be listed\n", name)
	}
	for _, k := range m.Kinds {
		fmt.Fprintf(o.streams.Out, "%s: %s at resourceVersion %s\n", k.Name(),
			command.Count(k.Objects, "object"), k.ResourceVersion)
		if k.Terminating > 0 {
			fmt.Fprintf(o.streams.Err, "note: %s: %s left out, being deleted\n", k.Name(),
				command.Count(k.Terminating, "object"))
		}
	}
	if written {
		fmt.Fprintf(o.streams.Out, "written to %s\n", o.output)
	} else {
		fmt.Fprintf(o.streams.Out, "%s has the same already\n", o.output)
	}
	return nil
}

// noteDropped says which fields are not in the backup, since the version that it was read in lacks them.
func (o *backupOptions) noteDropped(ctx context.Context, b *backup.Backup) error {
	for _, k := range b.Kinds {
		kind := kinds.Kind{GVK: k.GVK, GVR: k.GVK.GroupVersion().WithResource(k.Resource)}
		lost, err := conversions.DroppedBy(kind, nil, conversions.DefinitionsOf(ctx, b.Client))
		if err != nil {
			return err
		}
		if lost != "" {
			fmt.Fprintf(o.streams.Err,
				"note: %s: version %s lacks what objects have in another one, and no webhook converts: left out are %s\n",
				kind.GVR.GroupResource(), k.GVK.Version, lost)
		}
	}
	return nil
}

// lostValues says which random values a backup without Secrets does not have.
func lostValues(files []*load.File) string {
	names := selection.Generated(files)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", with values that a restored operator would make anew (generated: %s)", strings.Join(names, ", "))
}
