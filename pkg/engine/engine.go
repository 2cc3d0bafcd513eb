package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// Options are how an engine runs; what it does is in the configs.
type Options struct {
	// Workers is how many upstreams of one operator are worked on at once; at least 1.
	Workers int
	// DrainTimeout bounds how long a stop waits for what is being worked on.
	DrainTimeout time.Duration
	// DiscoveryInterval is how often a kind that is not served yet is looked for.
	DiscoveryInterval time.Duration
	// AfterDelete is how long a deleted downstream waits: where it went with its upstream, which is another watch's news, it
	// must not be made once more.
	AfterDelete time.Duration
	// Namespace is where events about an operator as a whole go; by default "default".
	Namespace string
	// Elected is closed once this process may write; by default when the manager is elected.
	Elected <-chan struct{}
	// HadOtherLeader reports, once Elected is closed, whether another process was the leader while this one was a standby: the
	// watches may lag behind what that process acted on. By default none was.
	HadOtherLeader func() bool
	// MayWrite waits until this process may write, which an elected one may not at every moment; it returns false once ctx
	// is done. By default it does not wait. What is refused nevertheless fails as if there were no API server.
	MayWrite func(ctx context.Context) bool
	Log      logr.Logger
}

// Engine runs operators against one API server. Reload changes which ones while it runs.
type Engine struct {
	options     Options
	connections *informers.Connections
	cluster     *kinds.Cluster
	informers   *informers.Factory
	elected     <-chan struct{}
	recorder    func(name string) events.EventRecorder
	// places are held by the looks of all operators at upstreams that need much.
	places   chan struct{}
	absences *kinds.Absences

	reloading chan struct{} // has room for one: one reload at a time
	mu        sync.Mutex
	operators map[string]*operator
	// running is what operators run under, from when started is closed.
	running context.Context
	started chan struct{}
	// strays are what was wrong at the last reload with files that no running operator came from.
	strays []string
	// missing are the errors of files whose operators could not start.
	missing []missingConfigError
	// wasReady is true once all operators were ready at the same time.
	wasReady atomic.Bool
}

// New prepares an engine for the loaded configs. It sends no request. Add it to a manager, which gives it leader
// election, events, metrics and health endpoints.
func New(cfg *rest.Config, mgr manager.Manager, files []*config.File, o Options) (*Engine, error) {
	c, err := informers.NewConnections(cfg)
	if err != nil {
		return nil, err
	}
	cluster, err := kinds.Live(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing discovery: %w", err)
	}
	o = withDefaults(o)
	e := &Engine{
		options: o, connections: c, cluster: cluster, absences: kinds.NewAbsences(cluster, o.DiscoveryInterval), informers: informers.NewFactory(c),
		places: reconcile.NewRenderSlots(), operators: map[string]*operator{}, started: make(chan struct{}), reloading: make(chan struct{}, 1), elected: o.Elected,
	}
	if e.elected == nil {
		e.elected = mgr.Elected()
	}
	e.recorder = func(name string) events.EventRecorder { return Recorder{mgr.GetEventRecorder(name)} }
	for _, f := range files {
		e.operators[f.Metadata.Name] = e.newOperator(f, e.recorder(f.Metadata.Name))
	}
	if err := errors.Join(mgr.AddReadyzCheck("operators", e.Ready), mgr.AddReadyzCheck("reload", e.Reloaded)); err != nil {
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
	return o
}

// NeedLeaderElection is false: informers are warm on a standby, and only the workers wait for the election.
func (e *Engine) NeedLeaderElection() bool { return false }

// Start runs every operator until ctx is done, then waits for what is being worked on. An operator that cannot run
// (its kind is not served, a permission is missing) says so and tries again; it holds up no other.
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
	return nil
}

func (e *Engine) newOperator(f *config.File, recorder events.EventRecorder) *operator {
	name := f.Metadata.Name
	o := &operator{engine: e, name: name, recorder: recorder, log: e.options.Log.WithValues("operator", name)}
	o.current, o.loaded = o.newGeneration(f), f
	return o
}
