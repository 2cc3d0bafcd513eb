package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/memcluster"
)

// world is a cluster in memory, one process that works on it, and everybody else, under a virtual clock. Whatever happens by
// chance follows from the seed and from what it happens to, not from the order in which goroutines run.
type world struct {
	t       testing.TB
	seed    uint64
	begun   time.Time
	cluster *memcluster.Cluster
	users   dynamic.Interface
	config  string
	dir     string // where the config is
	process *process

	mu      sync.Mutex
	happens map[string]uint64
	chaos   bool
	trace   []string
	// requests counts those about objects: no lists, watches and discovery.
	requests int
	// orphaned are the upstreams that were deleted with --cascade=orphan.
	orphaned map[string]bool
}

// newWorld makes a cluster that has the definitions, and begins the first process.
func newWorld(t testing.TB, seed uint64, definitions []*unstructured.Unstructured, conf string) *world {
	w := &world{
		t: t, seed: seed, begun: time.Now(), config: conf, dir: t.TempDir(), happens: map[string]uint64{}, chaos: true,
		orphaned: map[string]bool{},
	}
	if err := os.WriteFile(filepath.Join(w.dir, "config.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.cluster, err = memcluster.New(definitions, memcluster.WithDelivery(w.deliver)); err != nil {
		t.Fatal(err)
	}
	if w.users, err = dynamic.NewForConfig(w.cluster.Config()); err != nil {
		t.Fatal(err)
	}
	return w
}

// chance is a source of numbers for the next time that something of this description happens.
func (w *world) chance(what string) *rand.Rand {
	w.mu.Lock()
	w.happens[what]++
	n := w.happens[what]
	w.mu.Unlock()
	return w.source(what, n)
}

func (w *world) source(what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// tell writes a line of the trace.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%9.3fs  ", time.Since(w.begun).Seconds())+fmt.Sprintf(format, args...))
}

// deliver has each watch lag on its own: often for milliseconds, now and then for seconds.
func (w *world) deliver(about memcluster.Watch, e memcluster.Event) memcluster.Delivery {
	r, longest := w.source(about.GVR.Resource, e.Type, e.Object.GetUID(), e.Object.GetResourceVersion()), 60
	if r.IntN(6) == 0 {
		longest = 4000
	}
	return memcluster.Delivery{After: time.Duration(r.IntN(longest)) * time.Millisecond}
}

// process is one life of the operator, and the network between it and the cluster.
type process struct {
	world *world
	stop  context.CancelFunc
	done  chan error

	mu   sync.Mutex
	dead bool
	open map[*body]struct{}
}

// body is the body of a watch.
type body struct{ io.ReadCloser }

// begin starts a process.
func (w *world) begin() {
	p := &process{world: w, done: make(chan error, 1), open: map[*body]struct{}{}}
	cfg := w.cluster.Config()
	cfg.Transport = p
	files, errs := config.Load(config.Options{Files: []string{w.dir}})
	if len(errs) > 0 {
		w.t.Fatal(errs)
	}
	grace := time.Minute
	mgr, err := manager.New(cfg, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	log := funcr.New(func(_, args string) { w.tell("log: %s", args) }, funcr.Options{})
	if _, err := engine.New(cfg, mgr, files, engine.Options{Workers: 2, Log: log, DrainTimeout: 5 * time.Second}); err != nil {
		w.t.Fatal(err)
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	w.process = p
	w.tell("a process begins")
	go func() { p.done <- mgr.Start(ctx) }()
}

// kill ends the process at once: none of its requests reaches the cluster any more, and no answer reaches it.
func (w *world) kill() {
	p := w.process
	w.tell("the process is killed")
	p.mu.Lock()
	p.dead = true
	open := p.open
	p.open = nil
	p.mu.Unlock()
	for b := range open {
		_ = b.ReadCloser.Close() // of a stream in memory
	}
	p.stop()
	if err := <-p.done; err != nil && !errors.Is(err, context.Canceled) {
		w.tell("it ended with: %v", err)
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// What may happen to a request beside arriving.
const (
	lost     = iota // it never arrives
	failed          // the API server fails
	answered        // it is carried out, and the answer is lost
	fates    = 40   // of so many, one is each
)

// RoundTrip sends a request over a network that takes time and loses some.
func (p *process) RoundTrip(request *http.Request) (*http.Response, error) {
	w := p.world
	what := request.Method + " " + request.URL.Path
	r := w.chance(what)
	if err := pause(request.Context(), time.Duration(r.IntN(40))*time.Millisecond); err != nil {
		return nil, err
	}
	watches := request.URL.Query().Get("watch") != ""
	about := strings.Contains(request.URL.Path, "/namespaces/ns/") && !watches
	w.mu.Lock()
	fate := fates
	if w.chaos && about {
		fate = r.IntN(fates)
	}
	if about {
		w.requests++
	}
	w.mu.Unlock()
	switch {
	case p.isDead():
		return nil, syscall.ECONNRESET
	case fate == lost:
		w.tell("%s is lost", what)
		return nil, syscall.ECONNRESET
	case fate == failed:
		w.tell("%s fails", what)
		return failure(request), nil
	}
	sent, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	response, err := w.cluster.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if about {
		w.tell("%s %s: %d", what, sent, response.StatusCode)
	}
	err = pause(request.Context(), time.Duration(r.IntN(40))*time.Millisecond)
	if err == nil && fate == answered {
		w.tell("the answer to %s is lost", what)
	}
	if err != nil || fate == answered || !p.keep(response, watches) {
		_ = response.Body.Close() // nobody reads it
		return nil, syscall.ECONNRESET
	}
	return response, nil
}

// keep remembers a watch, which ends with the process. It returns false where that has ended.
func (p *process) keep(response *http.Response, watches bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if watches && !p.dead {
		b := &body{response.Body}
		p.open[b] = struct{}{}
		response.Body = b
	}
	return !p.dead
}

// bodyOf reads what a request sends, and leaves it there.
func bodyOf(request *http.Request) (string, error) {
	if request.Body == nil {
		return "", nil
	}
	text, err := io.ReadAll(request.Body)
	request.Body = io.NopCloser(bytes.NewReader(text))
	const shown = 400
	if len(text) > shown {
		return string(text[:shown]) + "…", err
	}
	return strings.TrimSpace(string(text)), err
}

// pause waits for d, or until ctx is done; then it returns why.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait lets the virtual clock go on: everybody else does what there is to do until then.
func wait(d time.Duration) { <-time.After(d) }

// failure is the answer of an API server that cannot do what it is asked for.
func failure(request *http.Request) *http.Response {
	text := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"by chance"}`
	return &http.Response{
		Status: "500 Internal Server Error", StatusCode: http.StatusInternalServerError, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)), Request: request,
	}
}
