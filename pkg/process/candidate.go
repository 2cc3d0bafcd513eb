package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/engine/fence"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// Election is how one of several processes becomes the one that writes.
type Election struct {
	Enabled bool
	// Name and Namespace are those of the Lease.
	Name, Namespace string
	Timings         leadership.Timings
	// Shards is how many all processes share; 0: one leader writes.
	Shards int
}

// participant is this process in an election, or in a set of processes that share shards.
type participant interface {
	Fence(cfg *rest.Config) *rest.Config
	FenceEvents(cfg *rest.Config) *rest.Config
	Elected() <-chan struct{}
	HadOtherLeader() bool
	Run(ctx context.Context, work func(context.Context) error) error
}

// candidate is this process in an election; nil if there is none.
type candidate struct {
	participant
	// tenure is what a write that does not go to an API server needs.
	tenure *leadership.Tenure
	// member is the participant of a set that shares shards; nil if one leader writes.
	member *shards.Member
	// leases are where such processes add up what guard counts.
	leases           coordination.LeasesGetter
	namespace, lease string
	// events is where the manager's recorder goes, which needs a guarded configuration to be made.
	events atomic.Pointer[manager.Manager]
}

// candidate prepares an election; fallback is the namespace of the Lease where none is given.
func (e *Election) candidate(cfg *rest.Config, fallback string, logger logr.Logger) (*candidate, error) {
	if !e.Enabled {
		return nil, nil
	}
	c := &candidate{namespace: e.Namespace, lease: e.Name}
	if c.namespace == "" {
		c.namespace = fallback
	}
	if e.Shards > 0 {
		var err error
		c.member, err = shards.New(cfg, shards.Options{Namespace: c.namespace, ID: e.Name, N: e.Shards,
			Timings: e.Timings, Record: c.record,
			Log: logger.WithName("shards")})
		if err != nil {
			return nil, fmt.Errorf("preparing the shards: %w", err)
		}
		c.participant, c.tenure = c.member, c.member.Process()
		if c.leases, err = coordination.NewForConfig(c.Fence(cfg)); err != nil {
			return nil, fmt.Errorf("preparing the connection: %w", err)
		}
		return c, nil
	}
	log := logger.WithName("leaderelection")
	one, err := leadership.New(cfg, leadership.Options{Namespace: c.namespace, Name: e.Name,
		Timings: e.Timings, Record: c.record, Log: log,
		Waiting: func(holder string, _ time.Duration) {
			if n, ok := shards.NumberOf(holder); ok {
				log.Info("waiting: processes with --shards hold the Lease", "lease", c.namespace+"/"+e.Name, "shards", n)
			}
		}})
	if err != nil {
		return nil, fmt.Errorf("preparing the election of a leader: %w", err)
	}
	c.participant, c.tenure = one, one.Tenure
	return c, nil
}

// record writes an event about the Lease.
func (c *candidate) record(note string) {
	mgr := c.events.Load()
	if mgr == nil {
		return
	}
	lease := &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: c.namespace, Name: c.lease}
	fence.Recorder{EventRecorder: (*mgr).GetEventRecorder(c.lease)}.Eventf(lease, nil,
		corev1.EventTypeNormal, "LeaderElection", "Elect",
		"%s", note)
}

// fence returns the configurations for the operators and for events, whose writes fail while this process does not
// lead.
func (c *candidate) fence(cfg *rest.Config) (operators, events *rest.Config) {
	if c == nil {
		return cfg, cfg
	}
	return c.Fence(cfg), c.FenceEvents(cfg)
}

// leads reports whether this process has been elected, or needs not be. Of processes that share shards, one at a time
// does what is done once for all: the one that holds the first shard.
func (c *candidate) leads() bool {
	switch {
	case c == nil:
		return true
	case c.member != nil:
		return c.member.Has(0)
	}
	select {
	case <-c.Elected():
		return true
	default:
		return false
	}
}

// engineOptions are how the engine runs.
func (c *candidate) engineOptions(
	workers int, namespace string, activations activation.Set, logger logr.Logger,
) engine.Options {
	o := engine.Options{Workers: workers, Namespace: namespace, Activation: activations.Of, Log: logger}
	if c != nil {
		o.Elected, o.HadOtherLeader, o.MayWrite, o.Tenure = c.Elected(), c.HadOtherLeader, c.tenure.Wait, c.tenure
	}
	if c != nil && c.member != nil {
		o.Shards = c.member
		o.Board = func(operator string) shards.Board {
			return shards.Board{Client: c.leases.Leases(c.namespace), Name: c.lease + "-guard-" + operator}
		}
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
		if c.member != nil {
			if err := mgr.AddReadyzCheck("shards", func(*http.Request) error { return c.member.Ready() }); err != nil {
				return fmt.Errorf("adding the readiness of shards: %w", err)
			}
		}
		c.events.Store(&mgr)
		err = c.Run(ctx, start)
	}
	if lost := (*leadership.LostError)(nil); errors.As(err, &lost) && lost.Err == nil {
		next := "it is a standby or the leader"
		if c != nil && c.member != nil {
			next = "it takes its share of the shards again"
		}
		return fmt.Errorf("%w. No action is needed: after a restart %s", err, next)
	}
	return err
}
