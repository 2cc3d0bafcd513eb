package engine

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestQueueLengths: what is told is as of now, and of queues that are worked on.
func TestQueueLengths(t *testing.T) {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "length"}, []string{"operator"})
	q := &polledGauge{GaugeVec: vec, of: map[string]func(set func(n int, labels ...string)){}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(q)
	length := func() (n float64, told bool) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				n, told = n+m.GetGauge().GetValue(), true
			}
		}
		return n, told
	}
	waiting := 3
	end := q.begin("a", func(set func(int, ...string)) { set(waiting) })
	if n, _ := length(); n != 3 {
		t.Errorf("it is %v, and 3 wait", n)
	}
	waiting = 1
	if n, _ := length(); n != 1 {
		t.Errorf("it is still %v, and 1 waits", n)
	}
	end()
	if n, told := length(); told {
		t.Errorf("it is %v of a queue that has ended", n)
	}
	q.begin("a", func(set func(int, ...string)) { set(7) })
	if n, _ := length(); n != 7 {
		t.Errorf("it is %v of the queue that came after, and 7 wait", n)
	}
}
