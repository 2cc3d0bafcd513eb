//go:build controlplane

package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// benchObjects is how many Widgets of 4 KB each operator meets.
const benchObjects = 1000

// BenchmarkAgainstHandwritten lets Corollary and a hand-written controller-runtime operator do the same work on the same
// API server: a ConfigMap for each of 1000 Widgets that are there already, to Ready. It reports, for each object, the
// process' CPU time, requests, and the heap that stays in use. Only the ratios mean anything.
func BenchmarkAgainstHandwritten(b *testing.B) {
	for _, side := range []struct {
		name  string
		start func(t testing.TB, cfg *rest.Config, ns string) (stop func())
	}{
		{"handwritten", startHandwritten},
		{"corollary", func(t testing.TB, cfg *rest.Config, ns string) func() {
			return start(t, cfg, fill(widgetConfig, ns, testkit.Unique(t))).halt
		}},
	} {
		b.Run(side.name, func(b *testing.B) {
			for b.Loop() {
				compare(b, side.start)
			}
		})
	}
}

// BenchmarkForEach makes 10,000 ConfigMaps, for 10,000 upstreams of one item and for 100 upstreams of 100 items. It reports the same, for
// each ConfigMap.
func BenchmarkForEach(b *testing.B) {
	const objects = 10_000
	for _, items := range []int{1, 100} {
		b.Run(fmt.Sprintf("%dx%d", objects/items, items), func(b *testing.B) {
			for b.Loop() {
				ns := testkit.Namespace(b)
				for i := range objects / items {
					workers := make([]string, items)
					for k := range workers {
						workers[k] = fmt.Sprintf("w%02d=%x", k, rand.Uint64())
					}
					testkit.Apply(b, ns, pool(fmt.Sprintf("p-%05d", i), workers...))
				}
				measure(b, ns, objects, objects+objects/items, func(t testing.TB, cfg *rest.Config, ns string) func() {
					return start(t, cfg, fill(poolConfig, ns, testkit.Unique(t))).halt
				})
			}
		})
	}
}

func compare(b *testing.B, start func(t testing.TB, cfg *rest.Config, ns string) func()) {
	ns := testkit.Namespace(b)
	for i := range benchObjects {
		testkit.Apply(b, ns, widget(fmt.Sprintf("w-%04d", i), "{data: {"+settings(i)+"}}"))
	}
	measure(b, ns, benchObjects, 2*benchObjects, start)
}

// measure lets an operator work on what is in a namespace, which takes that many writes at least, and reports what that takes for each of
// the objects.
func measure(b *testing.B, ns string, objects, leastWrites int, start func(t testing.TB, cfg *rest.Config, ns string) func()) {
	b.Helper()
	empty := testkit.Namespace(b)
	idle := start(b, testkit.Config(), empty) // what a process takes that has nothing to do
	waitIdle(b, func() int { return 0 })
	fixed := heapInUse()
	idle()
	before := heapInUse()
	fixed -= before

	var writes atomic.Int64
	cfg := testkit.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	cpu := cpuTime()
	stop := start(b, cfg, ns)
	testkit.Eventually(b, 10*time.Minute, func() (bool, string) {
		return writes.Load() >= int64(leastWrites), fmt.Sprintf("%d writes", writes.Load())
	})
	waitIdle(b, func() int { return int(writes.Load()) })
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(objects), "cpu-µs/object")
	b.ReportMetric(float64(writes.Load())/float64(objects), "writes/object")
	b.ReportMetric(float64(heapInUse()-before-fixed)/float64(objects), "heap-B/object")
	stop()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// settings is about 4 KB of what settings look like: keys that repeat, values that do not.
func settings(i int) string {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	words := strings.Fields("cache timeout seconds enabled region endpoint retries backend pool limit replicas prefix bucket level format interval")
	var parts []string
	for size := 0; size < 4000; {
		part := fmt.Sprintf(`%s.%s.%d: "%s-%08x"`, words[random.IntN(len(words))], words[random.IntN(len(words))], len(parts), words[random.IntN(len(words))], random.Uint32())
		parts, size = append(parts, part), size+len(part)
	}
	return strings.Join(parts, ", ")
}

// waitIdle waits until the events of the last writes have been worked on.
func waitIdle(b *testing.B, writes func() int) {
	last, since := writes(), time.Now()
	testkit.Eventually(b, patience, func() (bool, string) {
		if n := writes(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > time.Second, "requests still come"
	})
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func startHandwritten(t testing.TB, cfg *rest.Config, ns string) func() {
	mgr, err := manager.New(cfg, manager.Options{Scheme: handwrittenScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logFor(t),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}}, Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 4, SkipNameValidation: ptr.To(true)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := addHandwritten(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
