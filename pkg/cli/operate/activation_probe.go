package operate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

func newProbe(streams command.IO) *cobra.Command {
	o, rounds := &activationCommand{streams: streams}, 10
	cmd := &cobra.Command{
		Use:   "probe -c CONFIG [NAME]",
		Short: "Measure whether the times of an activation fit its lock",
		Long: `Measure, from this machine, how long requests to the lock take and how far the clocks
differ, where the service or the active cluster tells the time. The command fails if
leaseDuration, renewDeadline and retryPeriod do not fit that. It does not disturb the
active cluster: its writes are such that the lock refuses them. Run it in each cluster,
since each has a way of its own to the lock.`,
		Example: `  corollary activation probe -c configs/

  # For longer, such as while a backup of the lock service runs
  corollary activation probe -c configs/ --rounds 500 --timeout 1h`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if rounds < 1 {
				return command.Usagef("--rounds is %d: write 1 or more", rounds)
			}
			return o.run(cmd.Context(), names, func(ctx context.Context, files []*load.ActivationFile) error {
				return o.probe(ctx, files, rounds)
			})
		},
	}
	o.bind(cmd)
	cmd.Flags().IntVar(&rounds, "rounds", rounds, "How many reads and writes are measured, a quarter of retryPeriod apart")
	return cmd
}

// probe probes the locks in turn. It returns an error if the times of any do not fit.
func (o *activationCommand) probe(ctx context.Context, files []*load.ActivationFile, rounds int) error {
	var unfit []string
	for i, f := range files {
		store, err := locks.Open(f)
		if err != nil {
			return err
		}
		p, err := activation.ProbeLock(ctx, f, store, rounds)
		if err != nil {
			return fmt.Errorf("activation %s: %w", f.Metadata.Name, err)
		}
		if i > 0 {
			fmt.Fprintln(o.streams.Out)
		}
		if err := writeProbed(o.streams.Out, f.Metadata.Name, store.Describe(), p); err != nil {
			return err
		}
		if len(p.Problems) > 0 {
			unfit = append(unfit, f.Metadata.Name)
		}
	}
	if len(unfit) > 0 {
		return fmt.Errorf("the times of activation %s do not fit the lock", strings.Join(unfit, ", "))
	}
	return nil
}

func writeProbed(out io.Writer, name, lock string, p *activation.Probed) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	short := func(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
	fmt.Fprintf(w, "Activation\t%s\nLock\t%s\n", name, lock)
	for _, kind := range []struct {
		name string
		took activation.Latencies
	}{{"Reads", p.Reads}, {"Writes", p.Writes}} {
		if len(kind.took) > 0 {
			fmt.Fprintf(w, "%s\t%d: median %s, slowest %s\n", kind.name, len(kind.took),
				short(kind.took.Median()), short(kind.took.Slowest()))
		}
	}
	for _, c := range p.Clocks {
		direction := "ahead of"
		if c.Ahead < 0 {
			direction = "behind"
		}
		fmt.Fprintf(w, "Clock\t%s %s that of %s, within %s\n", short(c.Ahead.Abs()), direction, c.Of, short(c.Within))
	}
	if len(p.Clocks) == 0 {
		fmt.Fprintf(w, "Clock\tnot compared: the service does not tell the time, and no cluster has renewed the lock "+
			"meanwhile\n")
	}
	fmt.Fprintf(w, "Margin\t%s of renewDeadline: %d renewals in a row may fail\n", short(p.Margin), p.Retries)
	for _, problem := range p.Problems {
		fmt.Fprintf(w, "Problem\t%s\n", problem)
	}
	return w.Flush()
}
