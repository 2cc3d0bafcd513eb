// Package counters has the Prometheus metrics of what is done for upstreams.
package counters

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/pkg/status"
)

// The metrics are registered once for the process.
var (
	outcomes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_outcomes_total",
		Help: "Decisions that led to a request, by operator, downstream and state.",
	}, []string{"operator", "downstream", "state"})
	failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_failures_total",
		Help: "Requests that failed, by operator, downstream (empty: the upstream itself) and reason.",
	}, []string{"operator", "downstream", "reason"})
	drifts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_drift_total",
		Help: "Drift detections, by operator and downstream.",
	}, []string{"operator", "downstream"})
	objects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_objects",
		Help: "Downstreams by operator, downstream and state; state Invalid counts those that are not enforced because " +
			"their upstream is invalid.",
	}, []string{"operator", "downstream", "state"})
	upstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_upstreams",
		Help: "Upstreams by operator, and by status and reason of Ready; the reason of a failing request for the upstream " +
			"itself takes precedence.",
	}, []string{"operator", "ready", "reason"})
	renders = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_renders_total",
		Help: "Upstreams whose rules and templates were evaluated, by operator.",
	}, []string{"operator"})
	sharedUpstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_shared_upstreams",
		Help: "Upstreams that an operator does not watch, but whose downstreams have its field manager and labels, by " +
			"operator; absent if there are none.",
	}, []string{"operator"})
)

// kept are the metrics that keep their values for an operator until DropAll.
var kept = []interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}{outcomes, failures, drifts, objects, upstreams, renders, sharedUpstreams}

func init() {
	for _, metric := range kept {
		metrics.Registry.MustRegister(metric)
	}
}

// DropAll drops the metrics of an operator that is gone.
func DropAll(operator string) {
	for _, metric := range kept {
		metric.DeletePartialMatch(prometheus.Labels{"operator": operator})
	}
}

// Outcome counts a decision that leads to a request.
func Outcome(operator, downstream, state string) {
	outcomes.WithLabelValues(operator, downstream, state).Inc()
}

// Failure counts a failure: of a downstream, or of the upstream itself where that is empty.
func Failure(operator, downstream, reason string) {
	failures.WithLabelValues(operator, downstream, reason).Inc()
}

// Drift counts a detection of drift.
func Drift(operator, downstream string) { drifts.WithLabelValues(operator, downstream).Inc() }

// Render counts an upstream whose rules and templates were evaluated.
func Render(operator string) { renders.WithLabelValues(operator).Inc() }

// SetShared sets the metric; it is absent if there are none.
func SetShared(operator string, n int) {
	if n == 0 {
		sharedUpstreams.DeleteLabelValues(operator)
		return
	}
	sharedUpstreams.WithLabelValues(operator).Set(float64(n))
}

// AddObject adds n to the number of objects in a state.
func AddObject(operator, downstream, state string, n float64) {
	objects.WithLabelValues(operator, downstream, state).Add(n)
}

// AddUpstream adds n to the number of upstreams with a verdict.
func AddUpstream(operator string, v status.Verdict, n float64) {
	upstreams.WithLabelValues(operator, string(v.Ready), v.Reason).Add(n)
}
