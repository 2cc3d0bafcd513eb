package process

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/pkg/logging"
)

// newManager makes the frame in which the engine runs: metrics, health and events. Nothing
// asks its cache for anything, so it starts no informer and needs no rights.
func (o *Options) newManager(cfg *rest.Config) (manager.Manager, error) {
	mgr, err := manager.New(cfg, manager.Options{
		Logger:                 logging.ForManager(o.Log),
		Metrics:                metricsserver.Options{BindAddress: o.Metrics},
		HealthProbeBindAddress: o.Probes,
		PprofBindAddress:       o.Pprof,
	})
	if err != nil {
		return nil, fmt.Errorf(
			"preparing to run (--metrics-bind-address %s, --health-probe-bind-address %s, --pprof-bind-address %s; "+
				"0 turns each off): %w", o.Metrics, o.Probes, o.Pprof, err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	return mgr, nil
}
