//go:build controlplane

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// burstReaders is how many Widgets read the one ConfigMap.
const burstReaders = 10_000

// BenchmarkInputBurst lets 10,000 Widgets read one ConfigMap and changes it. It reports the watches that this takes, the
// requests for each reader, the heap for each, and how long a new Widget takes to Ready at the height of the burst.
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
