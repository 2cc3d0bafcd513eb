// Package metrics has the Prometheus metrics of operators. Those of what is done for upstreams are in
// pkg/reconcile/counters.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// The metrics are registered once for the process, beside controller-runtime's own for queues and leader election.
var (
	reconcileSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "corollary_reconcile_seconds",
		Help: "Duration of one reconciliation of one upstream, by operator.",
		// A quantile is estimated between two bounds: with bounds of four times each other it was up to three times too
		// high. The service level is 5 s.
		Buckets: []float64{0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5,
			0.6, 0.8, 1, 1.5, 2, 3, 5, 10, 30, 60},
	}, []string{"operator"})
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_requests_total",
		Help: "Requests about objects, by operator, verb, resource and status code; 0: no answer.",
	}, []string{"operator", "verb", "resource", "code"})
	queued = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_queue",
		Help: "Upstreams that wait to be reconciled, by operator; absent if this process does not run the operator.",
	}, []string{"operator"})
	upstreamVersions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_upstream_versions",
		Help: "Upstreams that a field manager wrote in a version of their kind, by operator and version; absent if this " +
			"process does not " +
			"run the operator.",
	}, []string{"operator", "version"})
	shardsUnfiltered = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_shards_unfiltered",
		Help: "1 if the API server ignores shardSelector and sends the upstreams of all shards, which are dropped here, " +
			"by operator; absent " +
			"without shards.",
	}, []string{"operator"})
	requirements = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_requirement_met",
		Help: "Whether the API server has a version that the config requires: 1, or 0 while the config is refused for " +
			"that; by operator, " +
			"name (kubernetes, or a CustomResourceDefinition) and version.",
	}, []string{"operator", "name", "version"})
	operatorState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_operator_state",
		Help: "1 for each state that an operator is in, 0 for the others.",
	}, []string{"operator", "reason"})
	guardChanges = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_guard_changes",
		Help: "Existing downstreams that a change waiting for confirmation would change or delete, by operator; absent if " +
			"none waits.",
	}, []string{"operator"})
	guardDeletions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_guard_deletions",
		Help: "Existing downstreams that a change waiting for confirmation would delete, by operator.",
	}, []string{"operator"})
	guardExisting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_guard_existing",
		Help: "Existing downstreams while a change waits for confirmation, by operator.",
	}, []string{"operator"})
	rolloutUpstreams = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_rollout_upstreams",
		Help: "Upstreams of a rollout that is under way, by operator and state: waiting, moving, ready or failed.",
	}, []string{"operator", "state"})
	sourceRows = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_source_rows",
		Help: "Rows that a query returned last, by operator and input; the input is empty for source.",
	}, []string{"operator", "input"})
	sourceReadTime = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_source_read_timestamp_seconds",
		Help: "When a query was last executed without an error, in seconds since 1970, by operator and input; the input " +
			"is empty for source.",
	}, []string{"operator", "input"})
	writeBacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_source_write_backs_total",
		Help: "Executions of source.writeBack, by operator and result: Written, or Failed.",
	}, []string{"operator", "result"})
	unwrittenRows = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_source_write_backs_pending",
		Help: "Rows whose state is not written back yet, by operator; absent if this process does not write it.",
	}, []string{"operator"})
	reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_config_reloads_total",
		Help: "Changed or new configs, by operator and result: Applied, or Failed; the operator is empty if it is not known.",
	}, []string{"operator", "result"})
	reloadsFailed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_config_reload_failed",
		Help: "1 while the latest config cannot be used, by operator; the operator is empty if none runs.",
	}, []string{"operator"})
)

// The results of a reload, and of an execution of source.writeBack.
const (
	Applied = "Applied"
	Written = "Written"
	Failed  = "Failed"
)

// kept are the metrics that keep their values for an operator until Forget: all but those that are polled.
var kept = []interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}{
	reconcileSeconds, requests, requirements, operatorState, guardChanges, guardDeletions,
	guardExisting, rolloutUpstreams, reloads, reloadsFailed,
	sourceRows, sourceReadTime, writeBacks, shardsUnfiltered,
}

func init() {
	for _, metric := range kept {
		registry.Registry.MustRegister(metric)
	}
	for _, gauge := range Polled {
		registry.Registry.MustRegister(gauge)
	}
}

// CountRequest counts a request about an object.
func CountRequest(operator, verb, resource string, code int) {
	requests.WithLabelValues(operator, verb, resource, strconv.Itoa(code)).Inc()
}

// ObserveReconcile records how long a reconcile took.
func ObserveReconcile(operator string, d time.Duration) {
	reconcileSeconds.WithLabelValues(operator).Observe(d.Seconds())
}

// SetStates shows which states an operator is in.
func SetStates(operator string, current []state.Condition) {
	for _, r := range state.Reasons {
		operatorState.WithLabelValues(operator, string(r)).Set(gaugeOf(state.Has(current, r)))
	}
}

// SetGuard shows the counts of a change that waits for confirmation.
func SetGuard(operator string, c guard.Count) {
	guardChanges.WithLabelValues(operator).Set(float64(c.Changed))
	guardDeletions.WithLabelValues(operator).Set(float64(c.Deleted))
	guardExisting.WithLabelValues(operator).Set(float64(c.Existing))
}

// SetRollout shows how far a rollout is; the zero value for none.
func SetRollout(operator string, p rollout.Progress) {
	if rolloutUpstreams.DeletePartialMatch(prometheus.Labels{"operator": operator}); p.State == "" {
		return
	}
	for state, n := range map[string]int{"waiting": p.All - p.Moved, "moving": p.Moved - p.Ready - p.Failed,
		"ready": p.Ready, "failed": p.Failed} {
		rolloutUpstreams.WithLabelValues(operator, state).Set(float64(n))
	}
}

// SetRequirements shows which versions a config requires, and which of them are met.
func SetRequirements(operator string, list []compile.Requirement) {
	requirements.DeletePartialMatch(prometheus.Labels{"operator": operator})
	for _, r := range list {
		requirements.WithLabelValues(operator, r.Name, r.Wanted).Set(gaugeOf(r.Unmet == nil))
	}
}

// ForgetGuard drops the counts of a change that no longer waits.
func ForgetGuard(operator string) {
	guardChanges.DeleteLabelValues(operator)
	guardDeletions.DeleteLabelValues(operator)
	guardExisting.DeleteLabelValues(operator)
}

// NoteSourceRead records that a query returned rows.
func NoteSourceRead(operator, input string, at time.Time, rows int) {
	sourceRows.WithLabelValues(operator, input).Set(float64(rows))
	sourceReadTime.WithLabelValues(operator, input).Set(float64(at.UnixMilli()) / 1000)
}

// CountWriteBack counts an execution of source.writeBack.
func CountWriteBack(operator, result string) { writeBacks.WithLabelValues(operator, result).Inc() }

// CountReload counts a changed or new config; operator is empty if it is not known.
func CountReload(operator, result string) { reloads.WithLabelValues(operator, result).Inc() }

// SetReloadFailed shows whether the latest config of an operator cannot be used.
func SetReloadFailed(operator string, failed bool) {
	reloadsFailed.WithLabelValues(operator).Set(gaugeOf(failed))
}

// ForgetReloadFailed drops what is shown of configs that no operator runs.
func ForgetReloadFailed() { reloadsFailed.DeleteLabelValues("") }

// SetUnfiltered shows that the API server sends the upstreams of all shards.
func SetUnfiltered(operator string) { shardsUnfiltered.WithLabelValues(operator).Set(1) }

// ExpectFiltered shows that the API server filters by shard, unless SetUnfiltered was called before.
func ExpectFiltered(operator string) { shardsUnfiltered.WithLabelValues(operator) }

// gaugeOf is a bool as the value of a gauge.
func gaugeOf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// Forget drops the metrics of an operator that is gone.
func Forget(operator string) {
	for _, metric := range kept {
		metric.DeletePartialMatch(prometheus.Labels{"operator": operator})
	}
	counters.DropAll(operator)
}
