package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// election is how one of several processes becomes the one that writes.
type election struct {
	enabled   bool
	name      string
	namespace string
	timings   leadership.Timings
}

func (e *election) bind(flags *pflag.FlagSet) {
	usual := leadership.DefaultTimings()
	flags.BoolVar(&e.enabled, "leader-elect", false, "Let one of several processes write at a time; the others are standbys with warm caches")
	flags.StringVar(&e.name, "leader-election-id", "", "Name of the Lease that --leader-elect uses; there is no default")
	flags.StringVar(&e.namespace, "leader-election-namespace", "",
		"Namespace of that Lease; by default --namespace, else the kubeconfig's or the pod's own")
	flags.DurationVar(&e.timings.LeaseDuration, "leader-election-lease-duration", usual.LeaseDuration,
		"How long the others wait for a leader that does not renew the Lease; whole seconds")
	flags.DurationVar(&e.timings.RenewDeadline, "leader-election-renew-deadline", usual.RenewDeadline,
		"How long after its last renewal a leader still writes; shorter than the lease duration")
	flags.DurationVar(&e.timings.RetryPeriod, "leader-election-retry-period", usual.RetryPeriod,
		"How often the leader renews the Lease; 1.2 times that is shorter than the renew deadline")
}

// check refuses what cannot be meant.
func (e *election) check() error {
	switch {
	case !e.enabled && (e.name != "" || e.namespace != ""):
		return usagef("--leader-election-id and --leader-election-namespace have no effect without --leader-elect")
	case !e.enabled && e.timings != leadership.DefaultTimings():
		return usagef("--leader-election-lease-duration, -renew-deadline and -retry-period have no effect without --leader-elect")
	case !e.enabled:
		return nil
	case e.name == "":
		return usagef("--leader-elect needs a name for its Lease: add --leader-election-id NAME")
	}
	if err := checkLeaseName(e.name); err != nil {
		return err
	}
	if problem := e.timings.Problem(); problem != "" {
		return usagef("--leader-election-%s", problem)
	}
	return nil
}

// checkLeaseName refuses a value of --leader-election-id that no Lease can be called.
func checkLeaseName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return usagef("--leader-election-id %q is not a valid name for a Lease: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// candidate is this process in an election; nil if there is none.
type candidate struct {
	*leadership.Election
	namespace, lease string
	// events is where the manager's recorder goes, which needs a guarded configuration to be made.
	events atomic.Pointer[manager.Manager]
}

// candidate prepares an election; fallback is the namespace of the Lease where none is given.
func (e *election) candidate(cfg *rest.Config, fallback string, logger logr.Logger) (*candidate, error) {
	if !e.enabled {
		return nil, nil
	}
	c := &candidate{namespace: e.namespace, lease: e.name}
	if c.namespace == "" {
		c.namespace = fallback
	}
	var err error
	c.Election, err = leadership.New(cfg, leadership.Options{Namespace: c.namespace, Name: e.name, Timings: e.timings, Record: c.record,
		Log: logger.WithName("leaderelection")})
	if err != nil {
		return nil, fmt.Errorf("preparing the election of a leader: %w", err)
	}
	return c, nil
}

// record writes an event about the Lease.
func (c *candidate) record(note string) {
	mgr := c.events.Load()
	if mgr == nil {
		return
	}
	lease := &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: c.namespace, Name: c.lease}
	engine.Recorder{EventRecorder: (*mgr).GetEventRecorder(c.lease)}.Eventf(lease, nil, corev1.EventTypeNormal, "LeaderElection", "Elect",
		"%s", note)
}

// fence returns the configurations for the operators and for events, whose writes fail while this process does not lead.
func (c *candidate) fence(cfg *rest.Config) (operators, events *rest.Config) {
	if c == nil {
		return cfg, cfg
	}
	return c.Fence(cfg), c.FenceEvents(cfg)
}

// leads reports whether this process has been elected, or needs not be.
func (c *candidate) leads() bool {
	if c == nil {
		return true
	}
	select {
	case <-c.Elected():
		return true
	default:
		return false
	}
}

// engineOptions are how the engine runs.
func (c *candidate) engineOptions(workers int, namespace string, activations activations, logger logr.Logger) engine.Options {
	o := engine.Options{Workers: workers, Namespace: namespace, Activation: activations.of, Log: logger}
	if c != nil {
		o.Elected, o.HadOtherLeader, o.MayWrite, o.Tenure = c.Elected(), c.HadOtherLeader, c.Wait, c.Tenure
	}
	return o
}

// elected is closed once this process leads, or needs not be elected.
func (c *candidate) elected() <-chan struct{} {
	if c != nil {
		return c.Elected()
	}
	always := make(chan struct{})
	close(always)
	return always
}

// serve runs the manager by start until ctx is done, or the Lease is lost where there is an election.
func (c *candidate) serve(ctx context.Context, mgr manager.Manager, start func(context.Context) error) error {
	var err error
	if c == nil {
		err = start(ctx)
	} else {
		c.events.Store(&mgr)
		err = c.Run(ctx, start)
	}
	if lost := (*leadership.LostError)(nil); errors.As(err, &lost) && lost.Err == nil {
		return fmt.Errorf("%w. No action is needed: after a restart it is a standby or the leader", err)
	}
	return err
}
