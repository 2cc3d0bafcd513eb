package engine

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/pkg/engine/metrics"
)

// The operators of other tests belong to other bubbles of virtual time: reading metrics must not ask them. Poll does
// that for one operator.
func init() {
	for _, g := range metrics.Polled {
		registry.Registry.Unregister(g)
		registry.Registry.MustRegister(g.GaugeVec)
	}
	// Those of libraries have series of each test that has ended, and reading them took a fifth of the time.
	for _, name := range []string{"rest_client_requests_total", "workqueue_adds_total", "workqueue_depth",
		"workqueue_longest_running_processor_seconds", "workqueue_queue_duration_seconds", "workqueue_retries_total",
		"workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds"} {
		registry.Registry.Unregister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name})) // a metric is known by its name
	}
	registry.Registry.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.Registry.Unregister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
}

// Poll sets the metrics for which an operator is asked whenever they are read.
func Poll(operator string) {
	for _, g := range metrics.Polled {
		g.Poll(operator)
	}
}

// Forget removes the metrics of an operator whose test has ended: reading those of thousands would take most of the
// time.
func Forget(operator string) { metrics.Forget(operator) }

// Kept reports what an operator has in its queue and remembers of upstreams that it does not look at.
func (e *Engine) Kept(name string) (n int, text string) {
	o := e.byName(name)
	o.mu.Lock()
	s := o.current.session
	o.mu.Unlock()
	queued, leaving, cascades := s.queue.Len(), len(s.reconciler.Deselected.Refs()), s.reconciler.Cascades.Number()
	return queued + leaving + cascades, fmt.Sprintf("%d are queued, %d remembered as leaving, of %d the deletion", queued, leaving, cascades)
}

// EndSessions ends the current session of each operator, which then starts over.
func (e *Engine) EndSessions() {
	for _, o := range e.all() {
		o.mu.Lock()
		s := o.current.session
		o.mu.Unlock()
		s.endSession(errors.New("a test ends it"))
	}
}
