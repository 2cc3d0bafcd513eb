package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/memcluster/store"
)

// world is a cluster in memory, the processes of the operator, and all other clients, with a virtual clock. Every
// random choice depends on the seed and on its subject, not on the order of goroutines.
type world struct {
	Schedule
	t        testing.TB
	begun    time.Time
	cluster  *memcluster.Cluster
	users    dynamic.Interface
	dir      string // where the config is
	replicas []*replica
	changed  chan struct{} // has room for one: there was a write

	mu       sync.Mutex
	happens  map[string]uint64
	noFaults bool
	trace    []string
	// problems are violations, faults the faults of requests.
	problems []string
	faults   []Fault
	variant  variant
	// requests are the requests for objects, without lists, watches and discovery.
	requests []string
	// orphaned are the objects whose upstream was deleted with --cascade=orphan, edited those that other clients changed.
	orphaned, edited map[string]bool
	// forgotten are the objects of a downstream that was removed from the config.
	forgotten map[types.UID]bool
	// foreign are objects of another owner with the name of one of the operator's.
	foreign map[string]*unstructured.Unstructured
	// beforeCreations counts the creations of the deletion.before object, by the upstream's uid.
	beforeCreations map[string]int
}

// newWorld sets up a world without objects.
func newWorld(t testing.TB, s Schedule) *world {
	w := &world{
		Schedule: s, t: t, begun: time.Now(), dir: t.TempDir(), happens: map[string]uint64{}, changed: make(chan struct{}, 1),
		orphaned: map[string]bool{}, edited: map[string]bool{}, beforeCreations: map[string]int{},
		forgotten: map[types.UID]bool{}, foreign: map[string]*unstructured.Unstructured{},
	}
	w.writeConfig()
	var err error
	if w.cluster, err = memcluster.New(s.Setup.definitions(t), memcluster.WithDelivery(w.deliver)); err != nil {
		t.Fatal(err)
	}
	s.Setup.learnKinds(t, w.cluster.Config())
	cfg := w.cluster.Config()
	cfg.Transport = userTransport{w}
	if w.users, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	for _, u := range s.Setup.inputs(t) {
		if _, err := w.cluster.Put(u); err != nil {
			t.Fatal(err)
		}
	}
	for i := range max(s.Setup.Replicas, 1) {
		w.replicas = append(w.replicas, &replica{world: w, name: fmt.Sprint("r", i+1)})
	}
	return w
}

// chance returns random numbers for the n-th event with this description.
func (w *world) chance(what string) (r *rand.Rand, n uint64) {
	w.mu.Lock()
	w.happens[what]++
	n = w.happens[what]
	w.mu.Unlock()
	return w.source(what, n), n
}

func (w *world) source(what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(w.Seed, h.Sum64()))
}

// logf adds a line to the trace.
func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%9.3fs  ", time.Since(w.begun).Seconds())+fmt.Sprintf(format, args...))
}

// problem records a violation.
func (w *world) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.logf("WRONG: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, text)
}

// deliver makes each watch lag separately: often for milliseconds, sometimes for seconds.
func (w *world) deliver(about store.Watch, e store.Event) store.Delivery {
	if w.Prompt {
		return store.Delivery{}
	}
	r, longest := w.source(about.UserAgent, about.GVR.Resource, about.Labels, e.Type, e.Object.GetUID(), e.Object.GetResourceVersion()), 60
	switch r.IntN(12) {
	case 0:
		longest = 4000
	case 1:
		longest = 700
	}
	return store.Delivery{After: milliseconds(r.IntN(longest))}
}

// userTransport is the connection of all clients but the operator.
type userTransport struct{ world *world }

func (u userTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.world.cluster.RoundTrip(request)
	if request.Method != http.MethodGet {
		u.world.notifyChange()
	}
	return response, err
}

// notifyChange wakes runControllers.
func (w *world) notifyChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// runControllers does what others do some time after a change: the garbage collector, controllers that report a status,
// and whoever finishes deletion.before objects.
func (w *world) runControllers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		r, _ := w.chance("attend")
		if pause(ctx, milliseconds(r.IntN([]int{10, 300, 3000}[r.IntN(3)]))) != nil {
			return
		}
		for _, did := range w.cluster.CollectGarbage() {
			w.logf("the garbage collector %s", did)
		}
		w.report(ctx)
		w.releaseHeld(ctx)
		if r.IntN(2) == 0 {
			w.finishBefore(ctx)
		} else if len(w.unfinished(ctx)) > 0 {
			w.notifyChange() // run again later
		}
	}
}

// bodyOf reads the body of a request, and restores it.
func bodyOf(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	text, err := io.ReadAll(request.Body)
	request.Body = io.NopCloser(bytes.NewReader(text))
	return text, err
}

// shorten cuts a body for the trace.
func shorten(text []byte) string {
	const shown = 300
	if len(text) > shown {
		return string(text[:shown]) + "…"
	}
	return strings.TrimSpace(string(text))
}

// pause waits for d, or until ctx is done; then it returns the cause.
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

// wait advances the virtual clock: all others run until then.
func wait(d time.Duration) { <-time.After(d) }
