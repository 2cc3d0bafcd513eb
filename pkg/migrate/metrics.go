package migrate

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The metrics are those of migrate: Auto.
var (
	pending = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_migration_pending",
		Help: "1 if objects may be stored in another version than the CustomResourceDefinition stores now, else 0.",
	}, []string{"crd"})
	left = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "corollary_migration_left_objects",
		Help: "Objects that a running migration has not rewritten yet, by the API server's estimate; absent if none runs.",
	}, []string{"crd"})
	migrated = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corollary_migrated_objects_total",
		Help: "Stored objects that a migration has tried to rewrite, by result: Rewritten or Refused.",
	}, []string{"crd", "result"})
)

func init() { metrics.Registry.MustRegister(pending, left, migrated) }

// observe returns what keeps the metrics of one migration up to date while it runs.
func observe(crd string) func(Progress) {
	last := Progress{}
	return func(p Progress) {
		left.WithLabelValues(crd).Set(float64(p.Left))
		migrated.WithLabelValues(crd, "Rewritten").Add(float64(p.Rewritten - last.Rewritten))
		// one that is tried again is refused no more
		migrated.WithLabelValues(crd, "Refused").Add(float64(max(0, p.Refused-last.Refused)))
		last = p
	}
}
