package operate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// activationCommand is what the commands about activations have in common.
type activationCommand struct {
	streams command.IO
	files   []string
	timeout time.Duration
}

func newActivation(streams command.IO) *cobra.Command {
	o := &activationCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "activation -c CONFIG [NAME]",
		Short: "Show which cluster is active",
		Long: `Show, for each file of kind Activation, which cluster is active, since when, and with
which fencing token. The lock itself is read; no cluster is asked.`,
		Example: `  corollary activation -c configs/

  # Have another cluster take over, without a gap in which nobody writes for long
  corollary activation handover -c configs/`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error { return o.run(cmd.Context(), names, o.show) },
	}
	o.bind(cmd)
	cmd.AddCommand(newHandover(streams), newForce(streams), newProbe(streams))
	return cmd
}

func (o *activationCommand) bind(cmd *cobra.Command) {
	command.BindFiles(cmd, &o.files, "config", "c",
		"File of kind Activation, or a directory with some; may be repeated", "yaml", "yml")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "How long to wait for the lock")
}

// run runs work for the activations that are named, or all.
func (o *activationCommand) run(
	ctx context.Context, names []string, work func(context.Context, []*load.ActivationFile) error,
) error {
	if len(o.files) == 0 {
		return command.Usagef("no config is given: add -c FILE, or -c DIRECTORY")
	}
	ctx, stop := command.UntilSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	files, problems := load.Activations(load.Options{Files: o.files, Anybody: true}, nil)
	if err := command.Refuse(o.streams, problems, nil); err != nil {
		return err
	}
	var known []string
	for _, f := range files {
		known = append(known, f.Metadata.Name)
	}
	switch {
	case len(files) == 0:
		return command.Usagef("no file of kind Activation is in %s", strings.Join(o.files, ", "))
	case len(names) == 0:
		return work(ctx, files)
	case !slices.Contains(known, names[0]):
		return command.Usagef("activation %s is not in the configs; there are %s", names[0], strings.Join(known, ", "))
	}
	return work(ctx, files[slices.Index(known, names[0]):][:1])
}

// one is work for a single activation, of which a command changes the lock.
func (o *activationCommand) one(work func(context.Context, *load.ActivationFile, leadership.Store) error) func(
	context.Context, []*load.ActivationFile) error {
	return func(ctx context.Context, files []*load.ActivationFile) error {
		if len(files) > 1 {
			return command.Usagef("the configs have %d activations: name one", len(files))
		}
		store, err := locks.Open(files[0])
		if err != nil {
			return err
		}
		return work(ctx, files[0], store)
	}
}

func (o *activationCommand) show(ctx context.Context, files []*load.ActivationFile) error {
	w := newStates(o.streams.Out)
	for _, f := range files {
		store, err := locks.Open(f)
		if err != nil {
			return err
		}
		s, err := activation.ReadHolder(ctx, store, time.Duration(f.RenewDeadline))
		if err != nil {
			return err
		}
		if apart := s.Ahead.Abs(); apart > s.LeaseDuration {
			fmt.Fprintf(o.streams.Err, "activation %s: the clock of %s differs from that of this machine by %s\n",
				f.Metadata.Name, s.Identity,
				duration.HumanDuration(apart))
		}
		writeState(w, f.Metadata.Name, store.Describe(), s, time.Now())
	}
	return w.Flush()
}

// newStates begins a table of activations.
func newStates(out io.Writer) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ACTIVATION\tACTIVE\tSINCE\tTOKEN\tRENEWED\tLOCK")
	return w
}

// writeState writes the line of one activation.
func writeState(w io.Writer, name, lock string, s *activation.State, now time.Time) {
	active, since, renewed := s.Identity, s.Since.Add(-s.Ahead).UTC().Format(time.RFC3339), "-"
	switch {
	case s.Token == leadership.NoToken && s.Holder != "": // a name that says who is active, and nothing else
		fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t%s\n", name, s.Holder, lock)
		return
	case s.Holder == "":
		active, since = "none", "-"
	case s.RanOut(now):
		active = fmt.Sprintf("none (was %s)", s.Identity)
	case s.Asked:
		active += " (asked to hand over)"
	}
	if s.Holder != "" {
		renewed = duration.HumanDuration(max(s.Silent(now), 0)) + " ago"
	}
	token := s.Token.String()
	if token == "" {
		token = "-"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", name, active, since, token, renewed, lock)
}

// awaitSuccessor waits until another process holds the lock, and says which.
func (o *activationCommand) awaitSuccessor(
	ctx context.Context, f *load.ActivationFile, store leadership.Store, before *activation.State,
) error {
	s, err := activation.AwaitSuccessor(ctx, store, before, min(time.Duration(f.LeaseDuration+f.RetryPeriod), o.timeout))
	if err == nil {
		_, err = fmt.Fprintf(o.streams.Out, "%s is active now, with token %s\n", s.Identity, s.Token)
	}
	return err
}

func newHandover(streams command.IO) *cobra.Command {
	o := &activationCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "handover -c CONFIG [NAME]",
		Short: "Ask the active cluster to hand over to another one",
		Long: `Ask the active cluster to hand over: it finishes what it has begun, releases the lock,
and takes it again no earlier than after leaseDuration. A standby takes over at once.
The request is written into the lock, and the active cluster sees it when it next
renews the lock. The command waits until another cluster is active, and fails if none
is after leaseDuration and retryPeriod, or after --timeout.`,
		Example: `  corollary activation handover -c configs/ global`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, names []string) error { return o.run(cmd.Context(), names, o.one(o.handover)) },
	}
	o.bind(cmd)
	return cmd
}

func (o *activationCommand) handover(ctx context.Context, f *load.ActivationFile, store leadership.Store) error {
	before, err := activation.AskToHandOver(ctx, store)
	if err != nil {
		return fmt.Errorf("activation %s: %w", f.Metadata.Name, err)
	}
	fmt.Fprintf(o.streams.Err, "%s is asked to hand over\n", before.Identity)
	return o.awaitSuccessor(ctx, f, store, before)
}

func newForce(streams command.IO) *cobra.Command {
	o, holder := &activationCommand{streams: streams}, ""
	cmd := &cobra.Command{
		Use:   "force -c CONFIG [NAME] --holder HOLDER",
		Short: "Take the lock away from the active cluster",
		Long: `Release the lock of a process that does not, so that a standby takes over at once
instead of when the lock runs out. Use it only if the process certainly writes no
more: one that runs finds out when it next renews the lock, and until then, for up to
renewDeadline, two clusters may write.

Without --holder the command only names the process that holds the lock. To confirm,
repeat the command with that name.`,
		Example: `  corollary activation force -c configs/ global --holder cluster-eu-1_5f0c…`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names, o.one(func(ctx context.Context, f *load.ActivationFile,
				store leadership.Store) error {
				return o.force(ctx, f, store, holder)
			}))
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&holder, "holder", "", "Process that holds the lock, to confirm")
	return cmd
}

func (o *activationCommand) force(
	ctx context.Context, f *load.ActivationFile, store leadership.Store, holder string,
) error {
	s, err := activation.ReadHolder(ctx, store, time.Duration(f.RenewDeadline))
	switch {
	case err != nil:
		return err
	case s.Holder == "":
		return fmt.Errorf("activation %s: %w", f.Metadata.Name, activation.ErrNobody)
	case holder == "":
		return command.Usagef(
			"%s holds the %s and renewed it %s ago. If it certainly writes no more, confirm with --holder %s", s.Holder,
			store.Describe(), duration.HumanDuration(max(s.Silent(time.Now()), 0)), s.Holder)
	}
	before, err := activation.TakeAway(ctx, store, holder)
	if err != nil {
		return fmt.Errorf("activation %s: %w", f.Metadata.Name, err)
	}
	fmt.Fprintf(o.streams.Err, "the lock is taken away from %s\n", before.Identity)
	return o.awaitSuccessor(ctx, f, store, before)
}
