package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

type releaseOptions struct {
	streams    IO
	configs    configFlags
	connection connection
	dryRun     bool
}

func newRelease(streams IO) *cobra.Command {
	o := &releaseOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "release -c CONFIG",
		Short: "Take the finalizer off every upstream, before an uninstall",
		Long: `Take the config's finalizer (conventions.finalizer) off every upstream that bears
it, so that upstreams can be deleted once nothing runs any more that would clean
up after them. Downstreams stay as they are: those with an owner reference still
go with their upstream, the others are left behind. The finalizer also comes off
what deletion.before has made.

Stop "corollary run" first: it would put the finalizer on again.

Only watch and conventions of a config are used, so one whose rules or templates
are broken does too. It takes the rights to list and to patch the upstreams, and
the objects of deletion.before. A failure does not stop the rest; the exit code
is 1 then.`,
		Example: `  # See which upstreams bear the finalizer
  corollary release -c app.yaml --dry-run

  corollary release -c app.yaml

  # In one namespace only
  corollary release -c app.yaml -n team-a`,
		Args: noArguments("configs are named with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return o.run(ctx)
		},
	}
	o.configs.bind(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print what would be done")
	o.connection.bind(cmd, "Release upstreams in this namespace only; by default in all that the config watches")
	return cmd
}

func (o *releaseOptions) run(ctx context.Context) error {
	files, problems, err := o.configs.load(o.streams)
	if err != nil {
		return err
	}
	cfg, err := o.connection.rest()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	cluster, err := kinds.Live(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	r := &releaser{client: client, kinds: cluster, out: o.streams.Out, dryRun: o.dryRun}
	failed := o.unusable(files, problems)
	for _, f := range files {
		if err := r.operator(ctx, f, o.connection.overrides.Context.Namespace); err != nil {
			failed = append(failed, fmt.Errorf("releasing the upstreams of operator %s: %w", f.Metadata.Name, err))
		}
	}
	verb := "released"
	if o.dryRun {
		verb = "would be released"
	}
	what := count(r.done, "upstream")
	if r.hooks > 0 {
		what += " and " + count(r.hooks, "object") + " of deletion.before"
	}
	fmt.Fprintf(o.streams.Out, "%s %s\n", what, verb)
	for _, err := range failed {
		fmt.Fprintln(o.streams.Err, err)
	}
	if len(failed) > 0 {
		return errors.New(count(len(failed), "failure"))
	}
	return nil
}
