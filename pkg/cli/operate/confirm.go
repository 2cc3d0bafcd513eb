package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/guard"
)

type confirmOptions struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
	digest     string
}

func newConfirm(streams command.IO) *cobra.Command {
	o := &confirmOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "confirm -c CONFIG [OPERATOR] --digest DIGEST",
		Short: "Approve a change that guard is holding",
		Long: `Confirm a change that waits: one that would delete or change more objects than the
config's guard allows. The digest is written to the key of the ConfigMap that
guard.confirm names, and only to that key; the ConfigMap is created if it is missing.

The digest identifies the objects that were counted, as they are and as they would
be. The waiting operator reports it in its log, its event and /readyz, and "corollary
plan" prints it. A later change by the same config has another digest.

OPERATOR can be left out if only one of the configs has guard.confirm.`,
		Example: `  # See what would change
  corollary plan -c app.yaml

  # Approve it, with the digest that the operator reports
  corollary confirm -c app.yaml shop --digest 8a5c…`,
		Args: cobra.ArbitraryArgs,
		RunE: command.RunUntilSignal(o.run),
	}
	o.configs.Bind(cmd)
	cmd.Flags().StringVar(&o.digest, "digest", "", "Digest that the waiting operator reports (required)")
	o.connection.Bind(cmd, "")
	return cmd
}

func (o *confirmOptions) run(ctx context.Context, names []string) error {
	files, err := o.configs.Valid(o.streams)
	if err != nil {
		return err
	}
	chosen, err := o.choose(files, names)
	if err != nil {
		return err
	}
	if o.digest == "" {
		return command.Usagef(
			"required flag --digest is not set: the waiting operator reports the digest in its log, its event and /readyz, " +
				"and " +
				"corollary plan prints it")
	}
	if !guard.IsDigest(o.digest) {
		return command.Usagef(
			"--digest is %q, which is not a digest: the waiting operator and corollary plan print it, 32 digits of 0-9 and a-f",
			o.digest)
	}
	client, err := o.connection.Dynamic()
	if err != nil {
		return err
	}
	var failed []error
	for _, f := range chosen {
		if err := o.confirm(ctx, client, f); err != nil {
			failed = append(failed, fmt.Errorf("confirming the change of operator %s: %w", f.Metadata.Name, err))
		}
	}
	return errors.Join(failed...)
}

// choose returns the operators to confirm: those that are named, else all that say where.
func (o *confirmOptions) choose(files []*load.File, wanted []string) ([]*load.File, error) {
	var chosen []*load.File
	var names []string
	for _, f := range files {
		names = append(names, f.Metadata.Name)
		confirmable := f.Guard != nil && f.Guard.Confirm != nil
		switch {
		case slices.Contains(wanted, f.Metadata.Name) && !confirmable:
			return nil, command.Usagef(
				"operator %s has no guard.confirm, which names where a confirmation is written: set guard.confirmed in its config "+
					"instead", f.Metadata.Name)
		case slices.Contains(wanted, f.Metadata.Name) || len(wanted) == 0 && confirmable:
			chosen = append(chosen, f)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return nil, command.Usagef("operator %s is not loaded; loaded are %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case len(chosen) == 0:
		return nil, command.Usagef("no operator has guard.confirm, which names where a confirmation is written")
	case len(chosen) > 1:
		return nil, command.Usagef("a digest belongs to one operator, and %d have guard.confirm: name the operator",
			len(chosen))
	}
	return chosen, nil
}

// confirm writes the one key, as the operator's field manager.
func (o *confirmOptions) confirm(ctx context.Context, client dynamic.Interface, f *load.File) error {
	at, digest := f.Guard.Confirm, o.digest
	if err := command.Decide(ctx, client, at, digest, f.Conventions.FieldManager); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.streams.Out,
		"operator %s: %s is confirmed under key %s of ConfigMap %s/%s; it counts only for exactly the "+
			"changes that "+
			"have this digest\n", f.Metadata.Name, digest, at.Key,
		at.Namespace, at.ConfigMap)
	return err
}
