package run

import (
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/process"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// election has the flags of an election.
type election struct{ process.Election }

func (e *election) bind(flags *pflag.FlagSet) {
	usual := leadership.DefaultTimings()
	flags.BoolVar(&e.Enabled, "leader-elect", false,
		"Let one of several processes write at a time; the others are standbys with warm caches")
	flags.StringVar(&e.Name, "leader-election-id", "", "Name of the Lease that --leader-elect uses; there is no default")
	flags.StringVar(&e.Namespace, "leader-election-namespace", "",
		"Namespace of that Lease; by default --namespace, else the kubeconfig's or the pod's own")
	flags.DurationVar(&e.Timings.LeaseDuration, "leader-election-lease-duration", usual.LeaseDuration,
		"How long the others wait for a leader that does not renew the Lease; whole seconds")
	flags.DurationVar(&e.Timings.RenewDeadline, "leader-election-renew-deadline", usual.RenewDeadline,
		"How long after its last renewal a leader still writes; shorter than the lease duration")
	flags.DurationVar(&e.Timings.RetryPeriod, "leader-election-retry-period", usual.RetryPeriod,
		"How often the leader renews the Lease; 1.2 times that is shorter than the renew deadline")
	flags.IntVar(&e.Shards, "shards", 0,
		"Number of shards that all processes with --leader-elect share, so that all of them write, each for "+
			"its own objects; the same for all, such as 16 for each; 0: only the leader writes")
}

// check refuses what cannot be meant.
func (e *election) check() error {
	switch {
	case e.Shards < 0 || e.Shards > shards.MostShards:
		return command.Usagef("--shards is %d: it must be from 1 to %d, or 0 for one leader that writes alone",
			e.Shards, shards.MostShards)
	case !e.Enabled && e.Shards > 0:
		return command.Usagef("--shards %d has no effect without --leader-elect: the processes share the shards by Leases",
			e.Shards)
	case !e.Enabled && (e.Name != "" || e.Namespace != ""):
		return command.Usagef("--leader-election-id and --leader-election-namespace have no effect without --leader-elect")
	case !e.Enabled && e.Timings != leadership.DefaultTimings():
		return command.Usagef(
			"--leader-election-lease-duration, -renew-deadline and -retry-period have no effect without --leader-elect")
	case !e.Enabled:
		return nil
	case e.Name == "":
		return command.Usagef("--leader-elect needs a name for its Lease: add --leader-election-id NAME")
	}
	if err := (&command.LeaseFlags{Name: e.Name}).Check(); err != nil {
		return err
	}
	if problem := e.Timings.Problem(); problem != "" {
		return command.Usagef("--leader-election-%s", problem)
	}
	return nil
}

// checkActivations refuses shards together with a lock that one process of a cluster holds: the others would not write
// for theirs.
func (e *election) checkActivations(files []*load.ActivationFile) error {
	for _, f := range files {
		if e.Shards > 0 && f.DNS == nil {
			return command.Usagef(
				"--shards %d cannot be used with activation %s: one process of a cluster holds its lock, so the others would not "+
					"write for their shards: leave out --shards, or use an activation with dns", e.Shards, f.Metadata.Name)
		}
	}
	return nil
}
