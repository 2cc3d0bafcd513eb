// Package process is what "corollary run" is made of, around the engine: the election, activations, the webhook for
// conversions, health, metrics, and configs that are loaded again.
package process

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// Options are what a process runs, and how.
type Options struct {
	// Config is for an API server that was asked for its kinds already.
	Config *rest.Config
	// Namespace is that of the Lease, if Election has none, and of events about operators.
	Namespace string
	Workers   int
	// Metrics, Probes and Pprof are the addresses of the endpoints; 0: none.
	Metrics, Probes, Pprof string
	Election               Election
	// Webhook serves conversions; nil: none are served.
	Webhook *Webhook
	// Loader has loaded First. Reload is how often it loads again, although files are watched too; 0: never.
	Loader *Loader
	First  Loaded
	Reload time.Duration
	Log    logr.Logger
	// Version and Revision are those of the program.
	Version, Revision string
}

// Run runs the operators until ctx is done, or the process has lost a Lease or a lock.
func Run(ctx context.Context, o Options) error {
	activations, err := activation.NewSet(o.First.Activations, o.Log)
	if err != nil {
		return err
	}
	part, err := o.Election.candidate(o.Config, o.Namespace, o.Log)
	if err != nil {
		return err
	}
	operators, events := part.fence(o.Config)
	mgr, err := o.newManager(events)
	if err != nil {
		return err
	}
	source, err := conversions.NewSource(operators)
	if err != nil {
		return err
	}
	source.Take(o.First.Conversions, o.First.ConversionProblems)
	files := append(engine.Startable(o.First.Files), engine.Deletable(o.First.Files)...)
	options := part.engineOptions(o.Workers, o.Namespace, activations, o.Log)
	options.Unconverted = source.Unconverted
	e, err := engine.New(operators, mgr, files, options)
	if err != nil {
		return fmt.Errorf("preparing the operators: %w", err)
	}
	if len(o.First.Problems) > 0 {
		e.ReportMissing(o.First.Files, o.First.Problems)
	}
	if err := o.follow(mgr, e, source, activations); err != nil {
		return err
	}
	if err := o.serveConversions(operators, mgr, source, part.leads); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		o.Log.Info("stopping: finishing running reconciliations; a second signal stops at once")
	})
	o.logStart(files)
	if err := part.serve(ctx, mgr, activations.Around(part.elected(), mgr.Start)); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	o.Log.Info("stopped")
	return nil
}

func (o *Options) logStart(files []*load.File) {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Metadata.Name
	}
	builds.WithLabelValues(o.Version, o.Revision, runtime.Version()).Set(1)
	o.Log.Info("starting", "version", o.Version, "revision", o.Revision, "server", o.Config.Host, "operators", names)
}

// follow has the manager load the configs again. Activations and the webhook stay as they are, as long as the process
// runs.
func (o *Options) follow(
	mgr manager.Manager, e *engine.Engine, source *conversions.Source, activations activation.Set,
) error {
	if o.Reload == 0 {
		return nil
	}
	again := func() ([]*load.File, config.Errors) {
		l := o.Loader.Load()
		source.Take(l.Conversions, l.ConversionProblems)
		return l.Files, slices.Concat(l.Problems, activations.Changed(l.Activations))
	}
	err := mgr.Add(&reloader{load: again, named: o.Loader.Named, interval: o.Reload,
		engine: e, log: o.Log})
	if err != nil {
		return fmt.Errorf("adding the reloader: %w", err)
	}
	return nil
}
