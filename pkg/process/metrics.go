package process

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var builds = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "corollary_build_info",
	Help: "1, for the version, revision and Go version of this process.",
}, []string{"version", "revision", "go"})

// What a process says of itself is registered here, beside what the engine counts: controller-runtime does so for its
// own controllers only, of which there are none.
func init() {
	metrics.Registry.MustRegister(builds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
