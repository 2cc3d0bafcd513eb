package shards

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// shardsByState is registered once for the process.
var shardsByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "corollary_shards",
	Help: "Number of shards by state, as this process sees them: held, loading, draining or lost by it, elsewhere " +
		"(other processes " +
		"hold them), free, suspect (a process died while it loaded them) or quarantined. All states add up to --shards.",
}, []string{"state"})

// states are all states of a shard.
var states = []string{string(active), string(loading), string(draining), string(lost), "elsewhere",
	"free", "suspect", "quarantined"}

func init() { metrics.Registry.MustRegister(shardsByState) }

func setMetrics(counts map[string]int) {
	for _, state := range states {
		shardsByState.WithLabelValues(state).Set(float64(counts[state]))
	}
}

func forgetMetrics() { shardsByState.Reset() }
