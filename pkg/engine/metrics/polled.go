package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// The queues of the operators that this process runs, the rows whose states are to be written, and the versions in
// which upstreams were written.
var (
	Queues          = newPolled(queued)
	Unwritten       = newPolled(unwrittenRows)
	WrittenVersions = newPolled(upstreamVersions)

	// Polled are all of them.
	Polled = []*PolledGauge{Queues, Unwritten, WrittenVersions}
)

// PolledGauge asks operators for their values whenever metrics are read. A counted gauge would keep what was queued
// when a queue ended, as at a reload, and a standby would count upstreams that it will not reconcile.
type PolledGauge struct {
	*prometheus.GaugeVec

	mu sync.Mutex
	of map[string]*poll
}

// poll is how one operator is asked.
type poll func(set func(n int, labels ...string))

func newPolled(vec *prometheus.GaugeVec) *PolledGauge {
	return &PolledGauge{GaugeVec: vec, of: map[string]*poll{}}
}

// Begin polls an operator until the returned function is called. ask sets the values by the labels after the
// operator's.
func (g *PolledGauge) Begin(operator string, ask func(set func(n int, labels ...string))) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := new(poll(ask))
	g.of[operator] = mine
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.of[operator] != mine { // its successor is asked by now
			return
		}
		delete(g.of, operator)
		g.DeletePartialMatch(prometheus.Labels{"operator": operator})
	}
}

// Collect is prometheus.Collector's.
func (g *PolledGauge) Collect(metrics chan<- prometheus.Metric) {
	g.mu.Lock()
	operators := slices.Collect(maps.Keys(g.of))
	g.mu.Unlock()
	for _, operator := range operators {
		g.Poll(operator)
	}
	g.GaugeVec.Collect(metrics)
}

// Poll asks one operator, if it is polled.
func (g *PolledGauge) Poll(operator string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ask := g.of[operator]
	if ask == nil {
		return
	}
	g.DeletePartialMatch(prometheus.Labels{"operator": operator})
	(*ask)(func(n int, labels ...string) {
		g.WithLabelValues(append([]string{operator}, labels...)...).Set(float64(n))
	})
}
