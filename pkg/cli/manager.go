package cli

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/pkg/logging"
)

// newManager makes the frame in which the engine runs: metrics, health and events. Nothing
// asks its cache for anything, so it starts no informer and needs no rights.
func (o *runOptions) newManager(cfg *rest.Config, logger logr.Logger) (manager.Manager, error) {
	mgr, err := manager.New(cfg, manager.Options{
		Logger:                 logging.ForManager(logger),
		Metrics:                metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress: o.probes,
		PprofBindAddress:       o.pprof,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to run (--metrics-bind-address %s, --health-probe-bind-address %s, --pprof-bind-address %s; "+
			"0 turns each off): %w", o.metrics, o.probes, o.pprof, err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	return mgr, nil
}
