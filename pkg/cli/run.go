package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

type runOptions struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
	logging    zap.Options
	workers    int
	metrics    string
	probes     string
	pprof      string
	reload     time.Duration
	election   election
	identity   string
	webhook    webhookFlags
	install    bool
	cache      configCache
}

func newRun(streams command.IO) *cobra.Command {
	o := &runOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "run -c CONFIG",
		Short: "Run the operators in the configs, until Ctrl-C",
		Long: `Run the operators in the configs. All configs are checked first, against the
schemas of the API server. A config with an error does not run, and neither do two
that conflict; the others run, and readiness lists those that do not. For a config
with an error, deletions of upstreams are still handled, unless the error is in what
a deletion depends on. If no config can run, the command fails. Downstreams of a kind
that is not installed yet wait for it; other downstreams and operators run.

Configs and the files that they name are watched. If one changes, only its operator
is reloaded; a bad one changes nothing. If one is removed, its operator stops and
deletes nothing.

Ctrl-C and SIGTERM finish the running reconciliations and exit 0; a second one exits
at once.

Every flag except --set can be set by an environment variable, COROLLARY_ and its
name in capitals: COROLLARY_WORKERS, COROLLARY_CONFIG (several separated by ":").
Flags win. Variables that Kubernetes sets for a Service called corollary are ignored.
COROLLARY_SET_<anything> overrides a value of a config, in the form of --set.`,
		Example: `  corollary run -c app.yaml

  # All configs of a directory, one of several replicas
  corollary run -c /etc/corollary --leader-elect --leader-election-id my-operator

  # With metrics, on a laptop
  corollary run -c app.yaml --context kind-dev --metrics-bind-address :8080 --zap-devel`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			misspelt, err := command.FromEnvironment(cmd.Flags(), streams.Env)
			if err != nil {
				return err
			}
			ctx, stop := command.UntilSignal(cmd.Context())
			defer stop()
			return o.run(ctx, misspelt)
		},
	}
	o.bind(cmd)
	return cmd
}

func (o *runOptions) bind(cmd *cobra.Command) {
	o.configs.Bind(cmd)
	flags := cmd.Flags()
	flags.IntVar(&o.workers, "workers", 10, "Number of upstreams of each operator that are reconciled at once")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "Address of the metrics endpoint, such as :8080; 0: none")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "Address of the endpoints /healthz and /readyz; 0: none")
	flags.StringVar(&o.pprof, "pprof-bind-address", "0", "Address of the Go profiling endpoint /debug/pprof, such as localhost:6060; 0: none")
	flags.DurationVar(&o.reload, "reload-interval", 30*time.Second,
		"How often configs are reloaded, although they are watched too; 0: load them only at the start")
	flags.BoolVar(&o.install, "install-crds", false,
		"Apply the CustomResourceDefinitions of kinds that configs describe by watch.schema, at the start; this needs rights to them")
	o.election.bind(flags)
	bindIdentity(flags, &o.identity)
	o.webhook.bindFlags(flags)
	o.connection.Bind(cmd, "Namespace of the Lease, and of events about operators; the configs decide what is watched")
	bindLogging(cmd, &o.logging)
}

// check refuses what cannot be meant, before anything is read.
func (o *runOptions) check() error {
	switch {
	case o.workers < 1:
		return command.Usagef("--workers is %d: at least 1 is needed", o.workers)
	case o.reload < 0:
		return command.Usagef("--reload-interval is %s: it cannot be negative", o.reload)
	}
	return o.election.check()
}

func (o *runOptions) run(ctx context.Context, misspelt []string) error {
	if err := o.check(); err != nil {
		return err
	}
	logger := newLogger(o.logging, o.streams.Err)
	o.streams.Log(logger)
	for _, name := range misspelt {
		logging.Warn(logger, "unknown environment variable, ignored", "name", name)
	}
	again, err := o.configs.Repeatable(o.streams)
	if err != nil {
		return err
	}
	files, activationFiles, problems, err := o.loadFirst(again)
	if err != nil {
		return err
	}
	if err := o.election.checkActivations(activationFiles); err != nil {
		return err
	}
	cfg, activations, err := o.connect(ctx, files, activationFiles, problems, logger)
	if err != nil {
		return err
	}
	loaded := files
	files = append(engine.Startable(files), engine.Deletable(files)...)
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err
	}
	part, err := o.election.candidate(cfg, namespace, logger)
	if err != nil {
		return err
	}
	operators, events := part.fence(cfg)
	mgr, err := o.newManager(events, logger)
	if err != nil {
		return err
	}
	source, err := conversions.NewSource(operators)
	if err != nil {
		return err
	}
	source.Take(o.configs.ConversionsBeside(loaded, again()))
	options := part.engineOptions(o.workers, namespace, activations, logger)
	if err := o.prepare(operators, mgr, files, loaded, problems, again, source, activations, options); err != nil {
		return err
	}
	if err := o.serveConversions(operators, mgr, source, part.leads, logger); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { logger.Info("stopping: finishing running reconciliations; a second signal stops at once") })
	b := command.Build()
	logger.Info("starting", "version", b.Version, "revision", b.Revision, "server", cfg.Host, "operators", names(files))
	if err := part.serve(ctx, mgr, activations.around(part.elected(), mgr.Start)); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	logger.Info("stopped")
	return nil
}

// loadFirst loads the configs, and the activations beside them. problems are the errors of both.
func (o *runOptions) loadFirst(again func() command.IO) (files []*load.File, locks []*load.ActivationFile, problems config.Errors, err error) {
	if err := o.configs.FindNearest(); err != nil {
		return nil, nil, nil, err
	}
	o.cache.named = o.configs.Files
	files, problems = o.cache.load(func() (loaded []*load.File, errs config.Errors) {
		if loaded, errs, err = o.configs.Load(again()); err != nil {
			return nil, nil //nolint:nilerr // loadFirst returns it
		}
		found, more := o.configs.ActivationsBeside(loaded, again(), o.identity)
		locks = found
		return loaded, append(errs, more...)
	})
	return files, locks, problems, err
}

// restLogged is the client configuration of a process that logs the API server's warnings.
func (o *runOptions) restLogged() (*rest.Config, error) {
	cfg, err := o.connection.REST()
	if err == nil {
		cfg.WarningHandler = nil
	}
	return cfg, err
}

// installCRDs applies the definitions of described kinds, if it was asked for.
func (o *runOptions) installCRDs(ctx context.Context, files []*load.File, logger logr.Logger) error {
	if !o.install {
		return nil
	}
	cfg, err := o.restLogged()
	if err != nil {
		return err
	}
	return installCRDs(ctx, cfg, files, logger)
}

// connect installs the definitions of described kinds, if it was asked for, and prepares the connections to the API server and to
// the locks of activations.
func (o *runOptions) connect(
	ctx context.Context, files []*load.File, locks []*load.ActivationFile, problems config.Errors, logger logr.Logger,
) (*rest.Config, activations, error) {
	if err := o.installCRDs(ctx, files, logger); err != nil {
		return nil, nil, command.Refuse(o.streams, problems, err)
	}
	cfg, err := o.preflight(files, problems, logger)
	if err != nil {
		return nil, nil, err
	}
	list, err := newActivations(locks, logger)
	return cfg, list, err
}

// prepare adds to the manager what it is to run: the operators, and what follows their configs.
func (o *runOptions) prepare(cfg *rest.Config, mgr manager.Manager, files, loaded []*load.File, problems config.Errors, again func() command.IO,
	source *conversions.Source, running activations, options engine.Options) error {
	e, err := engine.New(cfg, mgr, files, options)
	if err != nil {
		return fmt.Errorf("preparing the operators: %w", err)
	}
	if len(problems) > 0 {
		e.Missing(loaded, problems)
	}
	if o.reload == 0 {
		return nil
	}
	load := func() ([]*load.File, config.Errors) {
		return o.cache.load(func() ([]*load.File, config.Errors) {
			files, errs, err := o.configs.Load(again())
			if err != nil { // no config is given: it would not have come this far
				return nil, config.Errors{{Problem: err.Error()}}
			}
			source.Take(o.configs.ConversionsBeside(files, again()))
			found, more := o.configs.ActivationsBeside(files, again(), o.identity)
			return files, slices.Concat(errs, more, running.changed(found))
		})
	}
	if err := mgr.Add(&reloader{load: load, named: o.configs.Files, interval: o.reload, engine: e, log: options.Log}); err != nil {
		return fmt.Errorf("adding the reloader: %w", err)
	}
	return nil
}

// preflight reports every config error at once, those that only the API server's schemas show among them, if no operator can
// run. Else the engine, which compiles all of them, reports those of the others. That a kind cannot be looked up is not an error
// of the config: its operator waits for it.
func (o *runOptions) preflight(files []*load.File, problems config.Errors, logger logr.Logger) (*rest.Config, error) {
	cfg, err := o.restLogged()
	if err != nil {
		return nil, command.Refuse(o.streams, problems, err)
	}
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return nil, command.Refuse(o.streams, problems, err)
	}
	if anyCompiles(files, options) {
		return cfg, nil
	}
	list, problems, err := pipeline.CompileAll(files, problems, options)
	if !runnable(engine.Startable(files), list, err != nil) && !deletes(files, options) {
		if failed := command.Refuse(o.streams, problems, nil); failed != nil {
			return nil, failed
		}
	}
	if err != nil {
		logging.Warn(logger, "a config could not be checked against the API server's schemas yet", "error", err.Error())
	}
	return cfg, nil
}

// anyCompiles reports whether any operator that may start compiles: usually the first one does.
func anyCompiles(files []*load.File, o pipeline.Options) bool {
	o.Kinds = pipeline.WithDescribed(files, o.Kinds)
	return slices.ContainsFunc(engine.Startable(files), func(f *load.File) bool {
		_, problems, err := pipeline.Compile(f, o)
		return err == nil && len(problems) == 0
	})
}

// deletes reports whether there is anything to do for configs that cannot run: upstreams that are being deleted have a finalizer
// of theirs, and the config still says what to do about these.
func deletes(files []*load.File, o pipeline.Options) bool {
	o.Live, o.Deletions = true, true
	for _, f := range append(engine.Startable(files), engine.Deletable(files)...) {
		cut, _ := f.ForDeletion()
		if cut == nil || len(f.Conventions.Finalizers()) == 0 {
			continue
		}
		if _, problems, err := pipeline.Compile(cut, o); err != nil || len(problems) == 0 {
			return true
		}
	}
	return false
}

// runnable reports whether any operator can run: one that compiles, or might.
func runnable(startable []*load.File, compiled []pipeline.Compiled, unknown bool) bool {
	return unknown && len(startable) > 0 || slices.ContainsFunc(compiled, func(c pipeline.Compiled) bool {
		return slices.Contains(startable, c.File)
	})
}

func names(files []*load.File) []string {
	list := make([]string, len(files))
	for i, f := range files {
		list[i] = f.Metadata.Name
	}
	return list
}
