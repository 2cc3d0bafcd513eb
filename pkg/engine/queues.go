package engine

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Of the operators that this process runs: the queues that are worked on, and the versions in which upstreams were written.
var (
	queues          = &polledGauge{GaugeVec: queued, of: map[string]func(set func(n int, labels ...string)){}}
	writtenVersions = &polledGauge{GaugeVec: upstreamVersions, of: map[string]func(set func(n int, labels ...string)){}}
)

// polledGauge asks operators for their values whenever metrics are read. A count of what comes and goes would keep what a
// queue still had when it ended, as at a reload, and a standby would count what it only might have to do.
type polledGauge struct {
	*prometheus.GaugeVec

	mu sync.Mutex
	of map[string]func(set func(n int, labels ...string))
}

// begin has an operator asked until the end that it returns. poll sets the values by the labels after the operator's.
func (g *polledGauge) begin(operator string, poll func(set func(n int, labels ...string))) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[operator] = poll
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.of, operator)
		g.DeletePartialMatch(prometheus.Labels{"operator": operator})
	}
}

// Collect is prometheus.Collector's.
func (g *polledGauge) Collect(metrics chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for operator, poll := range g.of {
		g.DeletePartialMatch(prometheus.Labels{"operator": operator})
		poll(func(n int, labels ...string) {
			g.WithLabelValues(append([]string{operator}, labels...)...).Set(float64(n))
		})
	}
	g.GaugeVec.Collect(metrics)
}

// maxVersions bounds the values of the metric's label: no custom kind has so many versions.
const maxVersions = 10

// pollQueue and pollVersions are what the two gauges ask of a session.
func (s *session) pollQueue(set func(n int, labels ...string)) { set(s.queue.Len()) }

func (s *session) pollVersions(set func(n int, labels ...string)) {
	for version, n := range s.cache.WrittenVersions(maxVersions) {
		set(n, version)
	}
}
