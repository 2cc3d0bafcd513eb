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
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/memcluster"
)

// world is a cluster in memory, the processes that work on it, and everybody else, under a virtual clock. Whatever happens by
// chance follows from the seed and from what it happens to, not from the order in which goroutines run.
type world struct {
	Schedule
	t        testing.TB
	begun    time.Time
	cluster  *memcluster.Cluster
	users    dynamic.Interface
	dir      string // where the config is
	replicas []*replica
	changed  chan struct{} // has room for one: somebody has written

	mu      sync.Mutex
	happens map[string]uint64
	calm    bool
	trace   []string
	// problems are what is wrong, faults what happened to requests.
	problems []string
	faults   []Fault
	variant  variant
	// requests are those about objects, without lists, watches and discovery.
	requests []string
	// orphaned are the objects whose upstream was deleted with --cascade=orphan, and edited those that somebody wrote to.
	orphaned, edited map[string]bool
	// foreign are objects that somebody else made where one of the operator was.
	foreign map[string]*unstructured.Unstructured
	// befores are how often the object of deletion.before was created, by the upstream's uid.
	befores map[string]int
}

// newWorld sets up a world without objects.
func newWorld(t testing.TB, s Schedule) *world {
	w := &world{
		Schedule: s, t: t, begun: time.Now(), dir: t.TempDir(), happens: map[string]uint64{}, changed: make(chan struct{}, 1),
		orphaned: map[string]bool{}, edited: map[string]bool{}, befores: map[string]int{}, foreign: map[string]*unstructured.Unstructured{},
	}
	w.writeConfig()
	var err error
	if w.cluster, err = memcluster.New(s.Setup.definitions(t), memcluster.WithDelivery(w.deliver)); err != nil {
		t.Fatal(err)
	}
	s.Setup.learnKinds(t, w.cluster.Config())
	cfg := w.cluster.Config()
	cfg.Transport = user{w}
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

// chance is a source of numbers for the next time that something of this description happens, which is the n-th.
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

// tell writes a line of the trace.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%9.3fs  ", time.Since(w.begun).Seconds())+fmt.Sprintf(format, args...))
}

// problem is something that must not be.
func (w *world) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("WRONG: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, text)
}

// deliver has each watch lag on its own: often for milliseconds, now and then for seconds.
func (w *world) deliver(about memcluster.Watch, e memcluster.Event) memcluster.Delivery {
	if w.Prompt {
		return memcluster.Delivery{}
	}
	r, longest := w.source(about.UserAgent, about.GVR.Resource, about.Labels, e.Type, e.Object.GetUID(), e.Object.GetResourceVersion()), 60
	switch r.IntN(12) {
	case 0:
		longest = 4000
	case 1:
		longest = 700
	}
	return memcluster.Delivery{After: milliseconds(r.IntN(longest))}
}

// user is the connection of everybody else.
type user struct{ world *world }

func (u user) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.world.cluster.RoundTrip(request)
	if request.Method != http.MethodGet {
		u.world.wrote()
	}
	return response, err
}

// wrote tells those who wait for changes that there may be one.
func (w *world) wrote() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// attend is everybody who does by themselves what is to be done some time after a change: the garbage collector, and whoever
// does what deletion.before asks for.
func (w *world) attend(ctx context.Context) {
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
			w.tell("the garbage collector %s", did)
		}
		if r.IntN(2) == 0 {
			w.finishBefore(ctx)
		} else if len(w.unfinished(ctx)) > 0 {
			w.wrote() // later
		}
	}
}

// bodyOf reads what a request sends, and leaves it there.
func bodyOf(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	text, err := io.ReadAll(request.Body)
	request.Body = io.NopCloser(bytes.NewReader(text))
	return text, err
}

// shorten cuts a body to what the trace shows of it.
func shorten(text []byte) string {
	const shown = 300
	if len(text) > shown {
		return string(text[:shown]) + "…"
	}
	return strings.TrimSpace(string(text))
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
