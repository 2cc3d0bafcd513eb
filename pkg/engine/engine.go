package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Options are how an engine runs; what it does is in the configs.
type Options struct {
	// Workers is how many upstreams of one operator are worked on at a time; at least 1.
	Workers int
	// DrainTimeout bounds how long a stop waits for what is being worked on.
	DrainTimeout time.Duration
	// DiscoveryInterval is how often a kind that is not served yet is looked for.
	DiscoveryInterval time.Duration
	// Namespace is where events about an operator as a whole go; by default "default".
	Namespace string
	Log       logr.Logger
}

// Engine runs operators against one API server. Reload changes which ones while it runs.
type Engine struct {
	options  Options
	client   dynamic.Interface
	cluster  *kinds.Cluster
	watches  *watches
	elected  <-chan struct{}
	recorder func(name string) events.EventRecorder

	reloading sync.Mutex // one reload at a time
	mu        sync.Mutex
	operators map[string]*operator
	// running is what operators run under, from when started is closed.
	running context.Context
	started chan struct{}
	// strays are what was wrong at the last reload with files that no running operator came from.
	strays []string
}

// New prepares an engine for the loaded configs. It sends no request. Add it to a manager, which gives it leader
// election, events, metrics and health endpoints.
func New(cfg *rest.Config, mgr manager.Manager, files []*config.File, o Options) (*Engine, error) {
	e, err := connect(cfg, o)
	if err != nil {
		return nil, err
	}
	e.elected = mgr.Elected()
	e.recorder = func(name string) events.EventRecorder { return mgr.GetEventRecorder(name) }
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

// connect makes an engine without operators: its clients, discovery and watches.
func connect(cfg *rest.Config, o Options) (*Engine, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	client, err := newDynamic(cfg, httpClient, objectCodec{})
	if err != nil {
		return nil, err
	}
	packed, err := newDynamic(cfg, httpClient, packedCodec{})
	if err != nil {
		return nil, err
	}
	cluster, err := kinds.Live(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing discovery: %w", err)
	}
	return &Engine{options: withDefaults(o), client: client, cluster: cluster, watches: newWatches(client, packed),
		operators: map[string]*operator{}, started: make(chan struct{})}, nil
}

func withDefaults(o Options) Options {
	o.Workers = max(o.Workers, 1)
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 20 * time.Second
	}
	if o.DiscoveryInterval == 0 {
		o.DiscoveryInterval = 2 * time.Second
	}
	if o.Namespace == "" {
		o.Namespace = "default"
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
	e.reloading.Lock() // none begins any more: running is done
	defer e.reloading.Unlock()
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
