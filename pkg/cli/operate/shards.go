package operate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// shardsCommand is what the commands about shards have in common.
type shardsCommand struct {
	streams    command.IO
	connection command.Connection
	lease      command.LeaseFlags
}

func newShards(streams command.IO) *cobra.Command {
	o := &shardsCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "shards --leader-election-id NAME",
		Short: "Show which process holds which shard",
		Long: `Show, for processes that run with --shards, which process holds which shard, since
when, and how evenly the shards are shared. A shard in quarantine has killed several
processes that loaded it: no process takes it until it is released.`,
		Example: `  corollary shards --leader-election-id my-operator -n operators

  # Have a shard in quarantine taken again, once its objects are fixed or memory is raised
  corollary shards release 5 --leader-election-id my-operator -n operators`,
		Args: command.NoArguments("the set is named with --leader-election-id"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, namespace, err := o.client()
			if err != nil {
				return err
			}
			return o.show(cmd.Context(), client, namespace)
		},
	}
	o.bind(cmd)
	cmd.AddCommand(newShardsRelease(streams))
	return cmd
}

func (o *shardsCommand) bind(cmd *cobra.Command) {
	o.lease.Bind(cmd.Flags(), "Name of the Lease that the processes were started with",
		"Namespace of that Lease; by default --namespace, else the kubeconfig's or the pod's own")
	o.connection.Bind(cmd, "Namespace of the Leases")
}

// client returns a client for the Leases, and their namespace.
func (o *shardsCommand) client() (shards.Leases, string, error) {
	if o.lease.Name == "" {
		return nil, "", command.Usagef("the set of shards is not named: add --leader-election-id NAME, as for corollary run")
	}
	if err := o.lease.Check(); err != nil {
		return nil, "", err
	}
	namespace, err := o.lease.In(&o.connection)
	if err != nil {
		return nil, "", err
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return nil, "", err
	}
	client, err := coordination.NewForConfig(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("preparing the client: %w", err)
	}
	return client.Leases(namespace), namespace, nil
}

func (o *shardsCommand) show(ctx context.Context, client shards.Leases, namespace string) error {
	now := time.Now()
	state, err := shards.Read(ctx, client, o.lease.Name, now)
	if err != nil {
		return fmt.Errorf("reading the shards of Lease %s/%s: %w", namespace, o.lease.Name, err)
	}
	return writeShards(o.streams.Out, state, now)
}

// writeShards writes a table of shards, and how they are shared.
func writeShards(out io.Writer, state *shards.State, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SHARD\tSTATE\tPROCESS\tAGE\tTOKEN\tDEATHS")
	quarantined := 0
	for _, s := range state.Shards {
		holder, age := command.OneLine(s.Holder), "-"
		if holder == "" {
			holder = "-"
		}
		if !s.Since.IsZero() {
			age = duration.HumanDuration(max(now.Sub(s.Since), 0))
		}
		if s.Quarantined {
			quarantined++
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\n", s.Number, shardState(s), holder, age, s.Token, s.Deaths)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	counts := slices.Sorted(maps.Values(state.Processes))
	summary := "no process is known to be alive"
	if len(counts) > 0 {
		summary = fmt.Sprintf("%d processes: each holds from %d to %d; %d in quarantine", len(counts), counts[0],
			counts[len(counts)-1], quarantined)
	}
	text := fmt.Sprintf("\n%d shards, %s\n", state.N, summary)
	for _, name := range slices.Sorted(maps.Keys(state.Doubts)) {
		text += fmt.Sprintf("process %s: %s\n", command.OneLine(name), state.Doubts[name])
	}
	_, err := io.WriteString(out, text)
	return err
}

// shardState is the state of a shard in one word.
func shardState(s shards.Shard) string {
	switch {
	case s.Quarantined:
		return "quarantined"
	case s.Holder == "" && s.Deaths > 0:
		return "suspect"
	case s.Holder == "":
		return "free"
	case !s.Alive:
		return "silent"
	case s.Loading:
		return "loading"
	}
	return "held"
}

func newShardsRelease(streams command.IO) *cobra.Command {
	o := &shardsCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "release SHARD --leader-election-id NAME",
		Short: "End the quarantine of a shard",
		Long: `End the quarantine of a shard, so that a process takes it again. If that process dies
while it loads the shard, the deaths are counted from the beginning.`,
		Example: `  corollary shards release 5 --leader-election-id my-operator -n operators`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := strconv.Atoi(args[0])
			if err != nil || k < 0 || k >= shards.MostShards {
				return command.Usagef("%q is not a shard: give its number, as corollary shards shows it", args[0])
			}
			client, namespace, err := o.client()
			if err != nil {
				return err
			}
			deaths, err := shards.Release(cmd.Context(), client, o.lease.Name, k)
			if err != nil {
				return fmt.Errorf("releasing shard %d of Lease %s/%s: %w", k, namespace, o.lease.Name, err)
			}
			_, err = fmt.Fprintf(streams.Out, "shard %d is released: a process takes it; %d processes had died\n", k, deaths)
			return err
		},
	}
	o.bind(cmd)
	return cmd
}
