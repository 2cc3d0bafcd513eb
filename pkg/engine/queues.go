package engine

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// The queues of the operators that this process runs, the rows whose states are to be written, and the versions in which upstreams were written.
var (
	queues          = &polledGauge{GaugeVec: queued, of: map[string]func(set func(n int, labels ...string)){}}
	unwritten       = &polledGauge{GaugeVec: unwrittenRows, of: map[string]func(set func(n int, labels ...string)){}}
	writtenVersions = &polledGauge{GaugeVec: upstreamVersions, of: map[string]func(set func(n int, labels ...string)){}}
)

// polledGauge asks operators for their values whenever metrics are read. A counted gauge would keep what was queued when a
// queue ended, as at a reload, and a standby would count upstreams that it will not reconcile.
type polledGauge struct {
	*prometheus.GaugeVec

	mu sync.Mutex
	of map[string]func(set func(n int, labels ...string))
}

// begin polls an operator until the returned function is called. poll sets the values by the labels after the operator's.
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
	for operator := range g.of {
		g.poll(operator)
	}
	g.GaugeVec.Collect(metrics)
}

// poll asks one operator.
func (g *polledGauge) poll(operator string) {
	g.DeletePartialMatch(prometheus.Labels{"operator": operator})
	g.of[operator](func(n int, labels ...string) {
		g.WithLabelValues(append([]string{operator}, labels...)...).Set(float64(n))
	})
}

// maxVersions bounds the values of the metric's label: no custom kind has so many versions.
const maxVersions = 10

// pollQueue and pollVersions set the values of the two gauges.
func (s *session) pollQueue(set func(n int, labels ...string)) { set(s.queue.Len()) }

func (s *session) pollVersions(set func(n int, labels ...string)) {
	for version, n := range s.cache.WrittenVersions(maxVersions) {
		set(n, version)
	}
}
