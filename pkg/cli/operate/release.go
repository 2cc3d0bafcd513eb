package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/release"
)

type releaseOptions struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
	dryRun     bool
	skipBefore bool
	lease      command.LeaseFlags
	scaleDown  string // name of the Deployment
}

func newRelease(streams command.IO) *cobra.Command {
	o := &releaseOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "release -c CONFIG",
		Short: "Remove the finalizer from every upstream, before an uninstall",
		Long: `Remove the config's finalizer (conventions.finalizer) from every upstream, so that
upstreams can be deleted when no operator is running to clean up. Downstreams stay as
they are: those with an owner reference are still deleted with their upstream, the
others are left behind. The finalizer is also removed from deletion.before objects.
Objects with deletionPolicy: Orphan lose owner references that an earlier config set.
If upstreams are being deleted and the config has deletion.before or deletion.wait,
nothing is done: they would be gone before that, or before their downstreams. Wait
until they are gone, or give --skip-before.

"corollary run" would add the finalizer again. Stop it first; or, if it runs with
leader election, name its Lease with --leader-election-id: release waits for the
Lease and holds it. Afterwards a standby becomes the leader and adds the finalizers
again, unless --scale-down stops the processes permanently.

Only watch, conventions and deletion policies of a config are used, so its rules and templates may be
broken. Release needs the rights to list and patch the upstreams and the
deletion.before objects; with a Lease, to get, create and update it; and with
--scale-down, to patch deployments/scale and to delete the Lease. It uses your own
rights, not the config's serviceAccount. After a failure it continues with the rest
and exits with code 1.`,
		Example: `  # See which upstreams have the finalizer
  corollary release -c app.yaml --dry-run

  corollary release -c app.yaml

  # In one namespace only
  corollary release -c app.yaml -n team-a

  # While an operator is running, and stop it permanently
  corollary release -c app.yaml --leader-election-id my-operator \
    --leader-election-namespace operators --scale-down my-operator`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: command.RunUntilSignal(o.run),
	}
	o.configs.Bind(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print what would be done")
	cmd.Flags().BoolVar(&o.skipBefore, "skip-before", false,
		"Release also upstreams that are being deleted and wait for deletion.before, or by deletion.wait")
	o.lease.Bind(cmd.Flags(),
		"Name of the Lease of \"corollary run\": wait for it and hold it, so that no process writes meanwhile",
		"Namespace of that Lease, and of the Deployment; by default the kubeconfig's or the pod's own")
	cmd.Flags().StringVar(&o.scaleDown, "scale-down", "",
		"Name of the Deployment of \"corollary run\": scale it to 0 first, permanently. Afterwards the Lease is deleted")
	o.connection.Bind(cmd, "Release upstreams in this namespace only; by default in all that the config watches")
	return cmd
}

// check refuses what cannot be meant.
func (o *releaseOptions) check() error {
	if o.lease.Name == "" && o.scaleDown != "" {
		return command.Usagef(
			"--scale-down does not wait until the processes have ended: add --leader-election-id NAME, the Lease that they " +
				"write under")
	}
	return o.lease.Check()
}

func (o *releaseOptions) run(ctx context.Context, _ []string) error {
	if err := o.check(); err != nil {
		return err
	}
	files, problems, err := o.configs.Load(o.streams)
	if err != nil {
		return err
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	cluster, err := discovered.New(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	failed, ignored := release.Usable(files, problems)
	for _, e := range ignored {
		fmt.Fprintf(o.streams.Err, "note: ignored here: %s\n", e)
	}
	work := func(ctx context.Context, cfg *rest.Config, mayWrite func(context.Context) bool) error {
		client, err := command.DynamicFor(cfg)
		if err != nil {
			return err
		}
		r := &release.Releaser{Client: client, Kinds: cluster, Out: o.streams.Out, DryRun: o.dryRun, MayWrite: mayWrite,
			Here: o.scaleDown != "", SkipsBefore: o.skipBefore}
		return o.all(ctx, r, files, failed)
	}
	if o.dryRun {
		return work(ctx, cfg, nil)
	}
	client, err := command.DynamicFor(cfg)
	if err != nil {
		return err
	}
	r := &release.Releaser{Client: client, Kinds: cluster, SkipsBefore: o.skipBefore}
	if err := r.CheckDeletions(ctx, files, o.connection.Overrides.Context.Namespace); err != nil {
		return err
	}
	own := o.connection // -n is about upstreams
	own.Overrides.Context.Namespace = ""
	namespace, err := o.lease.In(&own)
	if err != nil {
		return err
	}
	o.streams.Silence()
	alone := release.Alone{Lease: o.lease.Name, Namespace: namespace, Deployment: o.scaleDown}
	return alone.During(ctx, cfg, o.streams.Out, work)
}

// all releases the upstreams of every operator, and reports what failed of it beside what failed before.
func (o *releaseOptions) all(ctx context.Context, r *release.Releaser, files []*load.File, failed []error) error {
	for _, f := range files {
		if err := r.Operator(ctx, f, o.connection.Overrides.Context.Namespace); err != nil {
			failed = append(failed, fmt.Errorf("releasing the upstreams of operator %s: %w", f.Metadata.Name, err))
		}
	}
	verb := "released"
	if o.dryRun {
		verb = "would be released"
	}
	what := command.Count(r.Done, "upstream")
	if r.Before > 0 {
		what += " and " + command.Count(r.Before, "object") + " of deletion.before"
	}
	fmt.Fprintf(o.streams.Out, "%s %s\n", what, verb)
	for _, err := range failed {
		fmt.Fprintln(o.streams.Err, err)
	}
	if len(failed) > 0 {
		return errors.New(command.Count(len(failed), "failure"))
	}
	return nil
}
