//go:build controlplane

package engine_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// BenchmarkForEach makes 10,000 ConfigMaps, for 10,000 upstreams of one item and for 100 upstreams of 100 items. It
// reports, for each ConfigMap, the CPU time of the process, requests, and the heap that stays in use. Only the ratios
// mean anything.
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

// measure lets an operator work on what is in a namespace, which takes that many writes at least, and reports what that
// takes for each of the objects.
func measure(b *testing.B, ns string, objects, leastWrites int, start func(t testing.TB, cfg *rest.Config, ns string) func()) {
	b.Helper()
	empty := testkit.Namespace(b)
	idle := start(b, testkit.Config(b), empty) // what a process takes that has nothing to do
	waitIdle(b, func() int { return 0 })
	fixed := heapInUse()
	idle()
	before := heapInUse()
	fixed -= before

	var writes atomic.Int64
	cfg := intercepted(testkit.Config(b), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
		return next.RoundTrip(r)
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

// burstReaders is how many Widgets read the one ConfigMap.
const burstReaders = 10_000

// BenchmarkInputBurst lets 10,000 Widgets read one ConfigMap and changes it. It reports the watches that this takes,
// the requests for each reader, the heap for each, and how long a new Widget takes to Ready at the height of the burst.
func BenchmarkInputBurst(b *testing.B) {
	for b.Loop() {
		burst(b)
	}
}

func burst(b *testing.B) {
	ns, platform, name := testkit.Namespace(b), testkit.Namespace(b), testkit.Unique(b)
	applySettings(b, platform, "shared", "navy")
	for i := range burstReaders {
		applyReader(b, ns, fmt.Sprintf("w-%05d", i), "ignored")
	}
	before := heapInUse()
	counter := testkit.NewCounter()
	conf := withInputs(ns, name, `objectName: self.spec.?name.orValue("")`, "fixedName: shared\n    namespace: "+platform)
	start(b, counter.Wrap(testkit.Config(b)), conf)
	writes := func(n int) {
		b.Helper()
		testkit.Eventually(b, 10*time.Minute, func() (bool, string) {
			return counter.Mutating() >= n, fmt.Sprintf("%d of %d writes", counter.Mutating(), n)
		})
	}
	writes(2 * burstReaders)
	watches := 0
	for _, r := range counter.Requests() {
		if r.Verb == "WATCH" && r.Namespace == platform {
			watches++
		}
	}
	b.ReportMetric(float64(watches), "input-watches")
	counter.Reset()
	b.ReportMetric(float64(heapInUse()-before)/burstReaders, "heap-B/reader")

	began := time.Now()
	applySettings(b, platform, "shared", "azure")
	writes(burstReaders / 10)
	late := time.Now()
	applyReader(b, ns, "late", "ignored")
	testkit.Eventually(b, 10*time.Minute, func() (bool, string) {
		u := testkit.Find(b, widgets, ns, "late")
		status, _, message := condition(u, "Ready")
		return status == "True", message
	})
	b.ReportMetric(float64(time.Since(late).Milliseconds()), "late-ms")
	writes(2*burstReaders + 2)
	b.ReportMetric(time.Since(began).Seconds(), "burst-s")
	b.ReportMetric(float64(counter.Mutating()-2)/burstReaders, "writes/reader")
}
