package sim_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// replica is a machine that restarts the operator whenever it has ended, and its network.
type replica struct {
	world *world
	name  string

	mu      sync.Mutex
	process *process
	// cut is closed once the network works again; nil while it works.
	cut chan struct{}
}

// process is one run of the operator.
type process struct {
	*replica
	engine *engine.Engine
	stop   context.CancelFunc

	mu   sync.Mutex
	dead bool
	open map[*body]struct{}
}

// body is the body of a watch.
type body struct {
	io.ReadCloser
	replica *replica
}

// Read implements io.Reader: it waits while the network is cut.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if cut := b.replica.isCut(); cut != nil {
		<-cut
	}
	return n, err
}

// run starts processes, one after the other, until ctx is done.
func (r *replica) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.live(ctx)
		c, _ := r.world.chance(r.name + " starts")
		_ = pause(ctx, milliseconds(200+c.IntN(3000)))
	}
}

// live is one run of a process.
func (r *replica) live(ctx context.Context) {
	w := r.world
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := &process{replica: r, stop: stop, open: map[*body]struct{}{}}
	files, problems := w.load()
	loaded := files
	files = append(engine.Startable(files), engine.Deletable(files)...)
	if len(files) == 0 {
		w.logf("%s cannot start: %v", r.name, problems)
		return
	}
	cfg := w.cluster.Config()
	cfg.Transport, cfg.UserAgent = p, r.name
	grace := time.Minute
	mgr, err := manager.New(cfg, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		w.t.Error(err)
		return
	}
	log := funcr.New(func(_, args string) { w.logf("%s logs %s", r.name, args) }, funcr.Options{})
	options, serve := engine.Options{Workers: 2, Log: log, DrainTimeout: 5 * time.Second}, mgr.Start
	if len(w.replicas) > 1 {
		election, err := leadership.New(cfg, leadership.Options{Namespace: "system", Name: "sim", Role: r.name, Log: log,
			Timings: leadership.Timings{LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 5 * time.Second}})
		if err != nil {
			w.t.Error(err)
			return
		}
		options.Elected, options.HadOtherLeader, options.MayWrite = election.Elected(), election.HadOtherLeader, election.Wait
		cfg = election.Fence(cfg)
		serve = func(ctx context.Context) error { return election.Run(ctx, mgr.Start) }
	}
	if p.engine, err = engine.New(cfg, mgr, files, options); err != nil {
		w.t.Error(err)
		return
	}
	if len(problems) > 0 {
		p.engine.ReportMissing(loaded, problems)
	}
	r.set(p)
	w.logf("%s starts", r.name)
	if err := serve(ctx); err != nil && !errors.Is(err, context.Canceled) {
		w.logf("%s ends: %v", r.name, err)
	}
	p.die() // whatever it is doing
	r.set(nil)
}

func (r *replica) set(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process = p
}

// alive returns the running process, or nil.
func (r *replica) alive() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

// reload makes the process load its config again.
func (r *replica) reload(ctx context.Context) {
	if p := r.alive(); p != nil {
		files, problems := r.world.load()
		p.engine.Reload(ctx, files, problems)
		r.world.logf("%s has loaded the config again, problems: %v", r.name, problems)
	}
}

// partition interrupts the network for a while.
func (r *replica) partition(ctx context.Context, d time.Duration) {
	r.mu.Lock()
	again := r.cut != nil
	if !again {
		r.cut = make(chan struct{})
	}
	r.mu.Unlock()
	if again {
		return
	}
	r.world.logf("the network of %s is cut for %s", r.name, d)
	go func() {
		_ = pause(ctx, d)
		r.reconnect()
	}()
}

// reconnect ends a partition of the network.
func (r *replica) reconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut != nil {
		close(r.cut)
		r.cut = nil
		r.world.logf("the network of %s works again", r.name)
	}
}

func (r *replica) isCut() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// kill ends the process at once: no more requests of it reach the cluster, and no response reaches it.
func (p *process) kill() {
	p.die()
	p.stop()
}

func (p *process) die() {
	p.mu.Lock()
	p.dead = true
	open := p.open
	p.open = nil
	p.mu.Unlock()
	for b := range open {
		_ = b.Close() // a stream in memory
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// cutWatches ends every watch, as a load balancer does.
func (p *process) cutWatches() {
	p.mu.Lock()
	open := p.open
	p.open = map[*body]struct{}{}
	p.mu.Unlock()
	for b := range open {
		_ = b.Close() // as above
	}
}
