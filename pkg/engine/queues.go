package engine

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// queues are those that are worked on, by operator.
var queues = &queueLengths{GaugeVec: queued, of: map[string]func() int{}}

// queueLengths asks the queues how long they are whenever metrics are read. A count of what comes and goes would keep what a
// queue still had when it ended, as at a reload, and a standby would count what it only might have to do.
type queueLengths struct {
	*prometheus.GaugeVec

	mu sync.Mutex
	of map[string]func() int
}

// begin has the length of an operator's queue told until the end that it returns.
func (q *queueLengths) begin(operator string, length func() int) (end func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of[operator] = length
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.of, operator)
		q.DeleteLabelValues(operator)
	}
}

// Collect is prometheus.Collector's.
func (q *queueLengths) Collect(metrics chan<- prometheus.Metric) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for operator, length := range q.of {
		q.WithLabelValues(operator).Set(float64(length()))
	}
	q.GaugeVec.Collect(metrics)
}
