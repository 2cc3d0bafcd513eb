package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestQueueLengths: the metric is current, and only of queues that are worked on.
func TestQueueLengths(t *testing.T) {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "length"}, []string{"operator"})
	q := newPolled(vec)
	registry := prometheus.NewRegistry()
	registry.MustRegister(q)
	expect := func(want float64, reported bool, reason string) {
		t.Helper()
		n, found := 0.0, false
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				n, found = n+m.GetGauge().GetValue(), true
			}
		}
		if n != want || found != reported {
			t.Errorf("it is %v, reported: %t, want %v, %t: %s", n, found, want, reported, reason)
		}
	}
	waiting := 3
	end := q.Begin("a", func(set func(int, ...string)) { set(waiting) })
	expect(3, true, "as many wait")
	waiting = 1
	expect(1, true, "it is not the previous value")
	end()
	expect(0, false, "the queue has ended")
	q.Begin("a", func(set func(int, ...string)) { set(7) })
	expect(7, true, "of the queue that came after")
}
