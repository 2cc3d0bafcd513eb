package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// runningFlags name the Lease that shows whether "corollary run" is running.
type runningFlags struct{ command.LeaseFlags }

func (r *runningFlags) bind(cmd *cobra.Command) {
	r.Bind(cmd.Flags(), "Name of the Lease of \"corollary run\", to say whether it is running",
		"Namespace of that Lease; by default the kubeconfig's or the pod's own")
}

// note says whether "corollary run" is running, as far as its Lease says.
func (r *runningFlags) note(ctx context.Context, cfg *rest.Config, c *command.Connection, note noteFunc) error {
	if r.Name == "" {
		note("it is unknown whether corollary run is running: name its Lease with --leader-election-id")
		return nil
	}
	namespace, err := r.In(c)
	if err != nil {
		return err
	}
	client, err := coordination.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	lease, err := client.Leases(namespace).Get(ctx, r.Name, metav1.GetOptions{})
	at := namespace + "/" + r.Name
	switch {
	case apierrors.IsNotFound(err):
		note("corollary run is not running: Lease %s does not exist", at)
	case err != nil:
		note("it is unknown whether corollary run is running: reading Lease %s: %s", at, apply.Classify(err).Message)
	default:
		note("%s", leaseText(at, lease.Spec, time.Now()))
	}
	return nil
}

// leaseText says whether the process that holds a Lease is running, and since when, as far as one reading shows it.
func leaseText(at string, l coordinationv1.LeaseSpec, now time.Time) string {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" {
		return fmt.Sprintf("corollary run is not running: nobody holds Lease %s", at)
	}
	if l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return fmt.Sprintf("it is unknown whether corollary run is running: Lease %s has no renewTime or no "+
			"leaseDurationSeconds", at)
	}
	since := ""
	if l.AcquireTime != nil {
		since = " since " + l.AcquireTime.UTC().Format(time.RFC3339)
	}
	lasts := time.Duration(*l.LeaseDurationSeconds) * time.Second
	if doubt := leadership.Doubt(l.RenewTime.Time, lasts, now); doubt != "" {
		return fmt.Sprintf("it is unknown whether corollary run is running: Lease %s names %s%s as its holder; %s",
			at, *l.HolderIdentity, since, doubt)
	}
	return fmt.Sprintf("corollary run is running: %s holds Lease %s%s", *l.HolderIdentity, at, since)
}
