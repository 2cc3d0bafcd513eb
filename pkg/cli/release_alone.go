package cli

import (
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/release"
)

// alone has the flags by which release makes sure that no process puts the finalizers on again.
type alone struct{ release.Alone }

func (a *alone) bind(flags *pflag.FlagSet) {
	flags.StringVar(&a.Lease, "leader-election-id", "",
		"Name of the Lease of \"corollary run\": wait for it and hold it, so that no process writes meanwhile")
	flags.StringVar(&a.Namespace, "leader-election-namespace", "",
		"Namespace of that Lease, and of the Deployment; by default the kubeconfig's or the pod's own")
	flags.StringVar(&a.Deployment, "scale-down", "",
		"Name of the Deployment of \"corollary run\": scale it to 0 first, permanently. Afterwards the Lease is deleted")
}

// check refuses what cannot be meant.
func (a *alone) check() error {
	switch {
	case a.Lease == "" && a.Deployment != "":
		return command.Usagef(
			"--scale-down does not wait until the processes have ended: add --leader-election-id NAME, the Lease that they write under")
	case a.Lease == "" && a.Namespace != "":
		return command.Usagef("--leader-election-namespace has no effect without --leader-election-id")
	case a.Lease == "":
		return nil
	}
	return checkLeaseName(a.Lease)
}
