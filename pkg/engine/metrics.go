package engine

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// The metrics are registered once for the process, beside controller-runtime's own for queues and leader election.
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
		Help: "Live objects found to be no longer what was applied, by operator and downstream.",
	}, []string{"operator", "downstream"})
	objects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_objects",
		Help: "Downstreams by operator, downstream and state; state Invalid counts those that are not enforced since their upstream is invalid.",
	}, []string{"operator", "downstream", "state"})
	upstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_upstreams",
		Help: "Upstreams by operator, and by status and reason of Ready; the reason of a failing request about the upstream itself stands before it.",
	}, []string{"operator", "ready", "reason"})
	reconcileSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "corollary_reconcile_seconds",
		Help:    "How long one look at one upstream took, by operator.",
		Buckets: prometheus.ExponentialBuckets(0.00001, 4, 10),
	}, []string{"operator"})
	renders = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_renders_total",
		Help: "Upstreams whose rules and templates were evaluated, by operator.",
	}, []string{"operator"})
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_requests_total",
		Help: "Requests about objects, by operator, verb, resource and status code; 0: no answer.",
	}, []string{"operator", "verb", "resource", "code"})
	sharedUpstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_shared_upstreams",
		Help: "Upstreams that an operator does not work for and whose downstreams bear its field manager and labels, by operator; nothing where there are none.",
	}, []string{"operator"})
	queued = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_queue",
		Help: "Upstreams that wait for a look, by operator; nothing where this process does not work for it.",
	}, []string{"operator"})
	operatorState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_operator_state",
		Help: "1 for the state that an operator as a whole is in, 0 for the others.",
	}, []string{"operator", "reason"})
	guardChanges = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_guard_changes",
		Help: "Standing downstreams that a change which waits for confirmation would change or delete, by operator; nothing where none waits.",
	}, []string{"operator"})
	guardDeletions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_guard_deletions",
		Help: "Standing downstreams that such a change would delete, by operator.",
	}, []string{"operator"})
	guardStanding = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_guard_standing",
		Help: "Standing downstreams that such a change is about, by operator.",
	}, []string{"operator"})
	reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_config_reloads_total",
		Help: "Changed or new configs, by operator and result: Applied, or Failed; the operator is empty where none could be made out.",
	}, []string{"operator", "result"})
	reloadsFailed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_config_reload_failed",
		Help: "1 while the config as it is now cannot be put to work, by operator; the operator is empty where none runs.",
	}, []string{"operator"})
)

// The results of a reload.
const (
	reloadApplied = "Applied"
	reloadFailed  = "Failed"
)

// kept are the metrics that keep what they were told of an operator until it is forgotten: all but the queues' lengths, which
// are asked for.
var kept = []interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}{
	outcomes, failures, drifts, objects, upstreams, reconcileSeconds, renders, requests, operatorState, guardChanges,
	guardDeletions, guardStanding, sharedUpstreams, reloads, reloadsFailed,
}

func init() {
	for _, metric := range kept {
		metrics.Registry.MustRegister(metric)
	}
	metrics.Registry.MustRegister(queues)
}

func countOutcome(operator, downstream, state string) {
	outcomes.WithLabelValues(operator, downstream, state).Inc()
}

func countFailure(operator, downstream, reason string) {
	failures.WithLabelValues(operator, downstream, reason).Inc()
}

func countDrift(operator, downstream string) { drifts.WithLabelValues(operator, downstream).Inc() }

func countRender(operator string) { renders.WithLabelValues(operator).Inc() }

func countRequest(operator, verb, resource string, code int) {
	requests.WithLabelValues(operator, verb, resource, strconv.Itoa(code)).Inc()
}

func observeReconcile(operator string, d time.Duration) {
	reconcileSeconds.WithLabelValues(operator).Observe(d.Seconds())
}

func setOperatorState(operator string, current reason) {
	for _, r := range operatorReasons {
		operatorState.WithLabelValues(operator, string(r)).Set(oneIf(r == current))
	}
}

func setGuard(operator string, c GuardCount) {
	guardChanges.WithLabelValues(operator).Set(float64(c.Changed))
	guardDeletions.WithLabelValues(operator).Set(float64(c.Deleted))
	guardStanding.WithLabelValues(operator).Set(float64(c.Standing))
}

// forgetGuard drops the counts of a change that waits no more.
func forgetGuard(operator string) {
	guardChanges.DeleteLabelValues(operator)
	guardDeletions.DeleteLabelValues(operator)
	guardStanding.DeleteLabelValues(operator)
}

// setShared has no value where there are none.
func setShared(operator string, n int) {
	if n == 0 {
		sharedUpstreams.DeleteLabelValues(operator)
		return
	}
	sharedUpstreams.WithLabelValues(operator).Set(float64(n))
}

func countReload(operator, result string) { reloads.WithLabelValues(operator, result).Inc() }

func setReloadFailed(operator string, failed bool) {
	reloadsFailed.WithLabelValues(operator).Set(oneIf(failed))
}

// oneIf is a truth as a gauge has it.
func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// forgetOperator drops everything about an operator that is gone.
func forgetOperator(operator string) {
	for _, metric := range kept {
		metric.DeletePartialMatch(prometheus.Labels{"operator": operator})
	}
}

// forgetObjects drops the counts of a session that has ended. One that has counted nothing leaves those of the session
// that works in its place.
func (s *session) forgetObjects() {
	if s.counted.Load() {
		objects.DeletePartialMatch(prometheus.Labels{"operator": s.name})
		upstreams.DeletePartialMatch(prometheus.Labels{"operator": s.name})
	}
}

// countStates moves an upstream's downstreams from the states that they were counted in to those they are in now.
func (s *session) countStates(r *record, results []pipeline.Result) {
	for i, state := range r.states {
		objects.WithLabelValues(s.name, s.pipeline.Downstreams[i].Name, string(state)).Dec()
	}
	r.states = nil
	s.counted.Store(true)
	for i, result := range results {
		state := result.Outcome.State
		objects.WithLabelValues(s.name, s.pipeline.Downstreams[i].Name, string(state)).Inc()
		r.states = append(r.states, state)
	}
}

// countVerdict moves an upstream from what Ready said when it was counted to what it says now; the zero value is nothing.
// A request about the upstream itself that fails, such as writing its status, is told before that: no status says it.
func (s *session) countVerdict(r *record, v status.Verdict) {
	if r.unable != "" && v.Reason != "" {
		v.Reason = r.unable
	}
	if r.verdict == v {
		return
	}
	s.counted.Store(true)
	if was := r.verdict; was.Reason != "" {
		upstreams.WithLabelValues(s.name, string(was.Ready), was.Reason).Dec()
	}
	if r.verdict = v; v.Reason != "" {
		upstreams.WithLabelValues(s.name, string(v.Ready), v.Reason).Inc()
	}
}

// countHook moves an upstream's deletion.before from the state that it was counted in to the one it is in now; "" is none.
func (s *session) countHook(r *record, state pipeline.State) {
	if r.hook.state == state {
		return
	}
	s.counted.Store(true)
	if r.hook.state != "" {
		objects.WithLabelValues(s.name, pipeline.HookName, string(r.hook.state)).Dec()
	}
	if r.hook.state = state; state != "" {
		objects.WithLabelValues(s.name, pipeline.HookName, string(state)).Inc()
	}
}
