package reconcile

import (
	"cmp"
	"slices"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/pkg/operator"
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
		Help: "Downstreams by operator, downstream and state; state Invalid counts those that are not enforced because their upstream is invalid.",
	}, []string{"operator", "downstream", "state"})
	upstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_upstreams",
		Help: "Upstreams by operator, and by status and reason of Ready; the reason of a failing request for the upstream itself takes precedence.",
	}, []string{"operator", "ready", "reason"})
	renders = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_renders_total",
		Help: "Upstreams whose rules and templates were evaluated, by operator.",
	}, []string{"operator"})
	sharedUpstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_shared_upstreams",
		Help: "Upstreams that an operator does not watch, but whose downstreams have its field manager and labels, by operator; absent if there are none.",
	}, []string{"operator"})
)

// kept are the metrics that keep their values for an operator until ForgetMetrics.
var kept = []interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}{outcomes, failures, drifts, objects, upstreams, renders, sharedUpstreams}

func init() {
	for _, metric := range kept {
		metrics.Registry.MustRegister(metric)
	}
}

// ForgetMetrics drops the metrics of an operator that is gone.
func ForgetMetrics(operator string) {
	for _, metric := range kept {
		metric.DeletePartialMatch(prometheus.Labels{"operator": operator})
	}
}

func countOutcome(operator, downstream, state string) {
	outcomes.WithLabelValues(operator, downstream, state).Inc()
}

// CountFailure counts a failure: of a downstream, or of the upstream itself where that is empty.
func CountFailure(operator, downstream, reason string) {
	failures.WithLabelValues(operator, downstream, reason).Inc()
}

func countDrift(operator, downstream string) { drifts.WithLabelValues(operator, downstream).Inc() }

func countRender(operator string) { renders.WithLabelValues(operator).Inc() }

// setShared sets the metric; it is absent if there are none.
func setShared(operator string, n int) {
	if n == 0 {
		sharedUpstreams.DeleteLabelValues(operator)
		return
	}
	sharedUpstreams.WithLabelValues(operator).Set(float64(n))
}

// ForgetObjects drops the counts of a session that has ended. One that has counted nothing leaves those of its successor.
func (r *Reconciler) ForgetObjects() {
	if r.counted.Load() {
		objects.DeletePartialMatch(prometheus.Labels{"operator": r.Name})
		upstreams.DeletePartialMatch(prometheus.Labels{"operator": r.Name})
	}
}

// statesOf are the states in which results are counted.
func statesOf(results []operator.Result) []countedState {
	states := make([]countedState, len(results))
	for i, result := range results {
		states[i] = countedState{result.Outcome.Downstream, result.Outcome.State}
	}
	return states
}

// count has an upstream counted by what change does, unless it is forgotten. Watches forget upstreams while workers reconcile them.
func (rec *record) count(change func()) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if !rec.forgotten {
		change()
	}
}

// uncount has an upstream counted no more.
func (r *Reconciler) uncount(rec *record) {
	rec.count(func() {
		r.moveStates(rec, nil)
		r.moveVerdict(rec, status.Verdict{})
		rec.forgotten = true
	})
}

// countStates moves an upstream's downstreams from the states in which they were counted to their current ones.
func (r *Reconciler) countStates(rec *record, states []countedState) {
	rec.count(func() { r.moveStates(rec, states) })
}

func (r *Reconciler) moveStates(rec *record, states []countedState) {
	for _, was := range rec.states {
		objects.WithLabelValues(r.Name, r.nameOf(was), string(was.state)).Dec()
	}
	r.counted.Store(true)
	for _, now := range states {
		objects.WithLabelValues(r.Name, r.nameOf(now), string(now.state)).Inc()
	}
	rec.states = states
}

// nameOf is how metrics call the object.
func (r *Reconciler) nameOf(counted countedState) string {
	if counted.downstream == beforeIndex {
		return operator.BeforeName
	}
	return r.Pipeline.Downstreams[counted.downstream].Name
}

// countVerdict moves an upstream from the verdict of Ready with which it was counted to the current one; the zero value is
// none. A failed request for the upstream itself, such as writing its status, takes precedence: no status reports it.
func (r *Reconciler) countVerdict(rec *record, v status.Verdict) {
	rec.count(func() { r.moveVerdict(rec, v) })
}

func (r *Reconciler) moveVerdict(rec *record, v status.Verdict) {
	if v.Reason != "" {
		v.Reason = cmp.Or(rec.unusual.get().upstreamFailure, v.Reason)
	}
	var was status.Verdict
	if rec.verdict != (unique.Handle[status.Verdict]{}) {
		was = rec.verdict.Value()
	}
	if was == v {
		return
	}
	r.counted.Store(true)
	if was.Reason != "" {
		upstreams.WithLabelValues(r.Name, string(was.Ready), was.Reason).Dec()
	}
	if rec.verdict = unique.Make(v); v.Reason != "" {
		upstreams.WithLabelValues(r.Name, string(v.Ready), v.Reason).Inc()
	}
}

// NotReady counts the upstreams that are not Ready, by reason, and all of them.
func (r *Reconciler) NotReady() (reasons map[string]int, all int) {
	reasons = map[string]int{}
	for ref := range r.memory.uids() {
		rec := r.memory.peek(ref)
		if rec == nil {
			continue
		}
		rec.mu.Lock()
		if rec.verdict != (unique.Handle[status.Verdict]{}) {
			v := rec.verdict.Value()
			if all++; v.Ready == metav1.ConditionFalse {
				reasons[v.Reason]++
			}
		}
		rec.mu.Unlock()
	}
	return reasons, all
}

// countBefore moves an upstream's deletion.before from the state in which it was counted to the current one; "" is none.
func (r *Reconciler) countBefore(rec *record, state operator.State) {
	rec.count(func() {
		states := slices.DeleteFunc(slices.Clone(rec.states), func(s countedState) bool { return s.downstream == beforeIndex })
		if state != "" {
			states = append(states, countedState{beforeIndex, state})
		}
		r.moveStates(rec, states)
	})
}
