package activation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// The metrics are registered once for the process.
var (
	active = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_activation_active",
		Help: "1 while this cluster is active, or 0 while it is a standby, by activation and by identity of this cluster.",
	}, []string{"activation", "identity"})
	tokens = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_activation_token",
		Help: "Fencing token of this cluster, by activation; absent while it is a standby.",
	}, []string{"activation"})
	renewSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "corollary_activation_renew_seconds",
		Help: "Duration of one request that takes, renews or releases the lock of an activation, by result: Renewed or " +
			"Failed.",
		Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
	}, []string{"activation", "result"})
	conflicts = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_activation_identity_conflict",
		Help: "1 once another process was seen to hold the lock of an activation under the identity of this cluster.",
	}, []string{"activation"})
)

func init() { metrics.Registry.MustRegister(active, tokens, renewSeconds, conflicts) }

// setActive sets whether this cluster is active, and its token; NoToken for none.
func setActive(name, identity string, is bool, token leadership.Token) {
	active.DeletePartialMatch(prometheus.Labels{"activation": name})
	value := 0.0
	if is {
		value = 1
	}
	active.WithLabelValues(name, identity).Set(value)
	if token == leadership.NoToken {
		tokens.DeleteLabelValues(name)
		return
	}
	tokens.WithLabelValues(name).Set(float64(token))
}

func observeRenewal(name string, took time.Duration, err error) {
	result := "Renewed"
	if err != nil {
		result = "Failed"
	}
	renewSeconds.WithLabelValues(name, result).Observe(took.Seconds())
}

func setIdentityConflict(name string) { conflicts.WithLabelValues(name).Set(1) }

// forgetMetrics drops the metrics of an activation.
func forgetMetrics(name string) {
	for _, m := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{active, tokens, renewSeconds, conflicts} {
		m.DeletePartialMatch(prometheus.Labels{"activation": name})
	}
}
