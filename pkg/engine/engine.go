package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/fence"
	"github.com/corollary-dev/corollary/pkg/engine/loading"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// Options are how an engine runs; what it does is in the configs.
type Options struct {
	// Workers is how many upstreams of one operator are reconciled at once; at least 1.
	Workers int
	// DrainTimeout bounds how long a stop waits for reconciles that have begun.
	DrainTimeout time.Duration
	// DiscoveryInterval is how often a kind that is not served yet is requested.
	DiscoveryInterval time.Duration
	// AfterDelete is how long the owner of a deleted downstream waits: if the owner is gone, too, which another watch
	// shows, the downstream must not be created again.
	AfterDelete time.Duration
	// Namespace is where events about an operator as a whole go; by default "default".
	Namespace string
	// Elected is closed once this process may write; by default when the manager is elected.
	Elected <-chan struct{}
	// HadOtherLeader reports, once Elected is closed, whether another process was the leader while this one was a standby:
	// the watches may lag behind what that process acted on. By default none was.
	HadOtherLeader func() bool
	// MayWrite waits until this process may write, which a leader may not at every moment; it returns false once ctx is
	// done. By default it does not wait. A request that is refused nevertheless fails like one to an unavailable API
	// server.
	MayWrite func(ctx context.Context) bool
	// Tenure is that of the election, for writes that do not go to an API server; nil if there is none.
	Tenure *leadership.Tenure
	// Activation is the tenure of the activation that an operator follows: it acts during the tenure, and else only
	// decides; nil: there is none. An operator with an error does nothing. By default no operator follows any.
	Activation func(f *load.File) (*leadership.Tenure, error)
	// Unconverted says why objects of a resource must not be read or written now; nil: they always may. An operator of
	// which one of the kinds is not converted waits.
	Unconverted informers.Unconverted
	// Shards are those for which this process acts; nil: there are none, and it acts for every upstream.
	Shards shards.Owned
	// Board is where the processes that share shards add up what guard counts for an operator. Without it, guard counts
	// the shards of each process by themselves.
	Board func(operator string) shards.Board
	Log   logr.Logger
}

// Engine runs operators against one API server. Reload changes the operators while it runs.
type Engine struct {
	options     Options
	connections *connections.Connections
	activations *fence.Activations
	cluster     *discovered.Cluster
	informers   *informers.Factory
	elected     <-chan struct{}
	recorder    func(name string) events.EventRecorder
	// renderSlots limit how many expensive upstreams of all operators are rendered at once.
	renderSlots chan struct{}
	recreations *attempt.Turn
	absences    *discovered.Absences
	shards      *loading.Loader // nil without shards

	reloading chan struct{} // has room for one: one reload at a time
	mu        sync.Mutex
	operators map[string]*runner
	// running is the context of operators, set before started is closed.
	running context.Context
	started chan struct{}
	// unclaimed are the errors of the last reload that no running operator reports.
	unclaimed []string
	// missing are the errors of files whose operators could not start.
	missing []missingConfig
	// wasReady is true once all operators were ready at the same time.
	wasReady atomic.Bool
}

// New prepares an engine for the loaded configs. It sends no request. Add it to a manager, which provides leader
// election, events, metrics and health endpoints.
func New(cfg *rest.Config, mgr manager.Manager, files []*load.File, o Options) (*Engine, error) {
	cfg = fence.WithSharedRate(cfg)
	c, err := connections.NewConnections(cfg)
	if err != nil {
		return nil, err
	}
	cluster, err := discovered.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing discovery: %w", err)
	}
	o = withDefaults(o)
	e := &Engine{
		options: o, connections: c, activations: fence.NewActivations(cfg), cluster: cluster,
		absences: discovered.NewAbsences(cluster, o.DiscoveryInterval), informers: informers.NewFactory(c),
		renderSlots: attempt.NewRenderSlots(), recreations: attempt.NewTurn(),
		operators: map[string]*runner{}, started: make(chan struct{}),
		reloading: make(chan struct{}, 1), elected: o.Elected,
	}
	if e.elected == nil {
		e.elected = mgr.Elected()
	}
	e.informers.Unconverted = o.Unconverted
	e.shards = loading.New(o.Shards, e.informers.Drop, e.startingOperators)
	e.recorder = func(name string) events.EventRecorder {
		return fence.Recorder{EventRecorder: mgr.GetEventRecorder(name)}
	}
	for _, f := range files {
		e.operators[f.Metadata.Name] = e.newOperator(f)
	}
	err = errors.Join(mgr.AddReadyzCheck("operators", e.Ready), mgr.AddReadyzCheck("reload", e.Reloaded),
		mgr.AddReadyzCheck("objects", e.ObjectsReady))
	if err != nil {
		return nil, fmt.Errorf("adding the readiness checks: %w", err)
	}
	if err := mgr.Add(e); err != nil {
		return nil, fmt.Errorf("adding the engine to the manager: %w", err)
	}
	return e, nil
}

func withDefaults(o Options) Options {
	o.Workers = max(o.Workers, 1)
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 20 * time.Second
	}
	if o.DiscoveryInterval == 0 {
		o.DiscoveryInterval = 2 * time.Second
	}
	if o.AfterDelete == 0 {
		o.AfterDelete = afterDelete
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.HadOtherLeader == nil {
		o.HadOtherLeader = func() bool { return false }
	}
	if o.MayWrite == nil {
		o.MayWrite = func(context.Context) bool { return true }
	}
	if o.Activation == nil {
		o.Activation = func(*load.File) (*leadership.Tenure, error) { return nil, nil }
	}
	return o
}

// NeedLeaderElection is false: informers run on a standby, too, and only the workers wait for the election.
func (e *Engine) NeedLeaderElection() bool { return false }

// Start runs every operator until ctx is done, then waits for reconciles that have begun. An operator that cannot run
// (its kind is not served, a permission is missing) reports that and retries; it delays no other.
func (e *Engine) Start(ctx context.Context) error {
	e.mu.Lock()
	e.running = ctx
	for _, o := range e.operators {
		o.start(ctx)
	}
	e.mu.Unlock()
	close(e.started)
	<-ctx.Done()
	e.reloading <- struct{}{} // none begins any more: running is done
	defer func() { <-e.reloading }()
	for _, o := range e.all() {
		o.stop()
	}
	e.activations.Stop()
	return nil
}

func (e *Engine) newOperator(f *load.File) *runner {
	name := f.Metadata.Name
	o := &runner{engine: e, name: name, log: e.options.Log.WithValues("operator", name)}
	o.current, o.loaded = o.newGeneration(f), f
	return o
}

// all lists the operators by name.
func (e *Engine) all() []*runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*runner, 0, len(e.operators))
	for _, o := range e.operators {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *runner) int { return strings.Compare(a.name, b.name) })
	return list
}

func (e *Engine) byName(name string) *runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.operators[name]
}

// electedAlready reports whether this process may write: what it lists from now on is not older than what another
// process acted on.
func (e *Engine) electedAlready() bool {
	select {
	case <-e.elected:
		return true
	default:
		return false
	}
}

// missingConfig is what concerns a config that could not start, and what it means for upstreams that are being deleted.
type missingConfig struct {
	cause *config.Error
	note  string
}

func (m missingConfig) withNote() string { return m.cause.Error() + m.note }
