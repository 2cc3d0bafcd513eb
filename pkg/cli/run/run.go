// Package run is the command run: it reads configs and flags, and starts the process of pkg/process.
package run

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/described"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/process"
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
	installs   bool
	// memory is the API server of dev; nil: the one of connection.
	memory *rest.Config
}

// reloadInterval is how often configs are reloaded, although they are watched.
const reloadInterval = 30 * time.Second

// New returns the command run.
func New(streams command.IO) *cobra.Command {
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
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081",
		"Address of the endpoints /healthz and /readyz; 0: none")
	flags.StringVar(&o.pprof, "pprof-bind-address", "0",
		"Address of the Go profiling endpoint /debug/pprof, such as localhost:6060; 0: none")
	flags.DurationVar(&o.reload, "reload-interval", reloadInterval,
		"How often configs are reloaded, although they are watched too; 0: load them only at the start")
	flags.BoolVar(&o.installs, "install-crds", false,
		"Apply the CustomResourceDefinitions of kinds that configs describe by watch.schema, at the start; this needs "+
			"rights to them")
	o.election.bind(flags)
	flags.StringVar(&o.identity, "activation-identity", "",
		"Identity of this cluster in files of kind Activation, in the place of theirs; different in each cluster")
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
	loader, err := o.loader(func(files []*load.File) { o.defineKinds(ctx, files, logger) })
	if err != nil {
		return err
	}
	first := loader.Load()
	if err := o.election.checkActivations(first.Activations); err != nil {
		return err
	}
	cfg, namespace, err := o.connect(ctx, first, logger)
	if err != nil {
		return err
	}
	var served *process.Webhook
	if len(first.Conversions)+len(first.ConversionProblems) > 0 || o.webhook.Service+o.webhook.URL+o.webhook.secret != "" {
		if served, err = o.webhook.read(); err != nil {
			return err
		}
	}
	b := command.Build()
	return process.Run(ctx, process.Options{Config: cfg, Namespace: namespace, Workers: o.workers,
		Metrics: o.metrics, Probes: o.probes,
		Pprof: o.pprof, Election: o.election.Election, Webhook: served, Loader: loader, First: first,
		Reload: o.reload, Log: logger,
		Version: b.Version, Revision: b.Revision})
}

// loader reads the configs, and what is beside them, and calls loaded with them. Standard input is read once.
func (o *runOptions) loader(loaded func([]*load.File)) (*process.Loader, error) {
	if err := o.configs.FindNearest(); err != nil {
		return nil, err
	}
	again, err := o.configs.Repeatable(o.streams)
	if err != nil {
		return nil, err
	}
	return &process.Loader{Named: o.configs.Files, Read: func() process.Loaded {
		files, problems, err := o.configs.Load(again())
		if err != nil { // no config is given: it would not have come this far
			return process.Loaded{Problems: config.Errors{{Problem: err.Error()}}}
		}
		loaded(files)
		l := process.Loaded{Files: files}
		l.Activations, l.Problems = o.configs.ActivationsBeside(files, again(), o.identity)
		l.Problems = append(problems, l.Problems...)
		l.Conversions, l.ConversionProblems = o.configs.ConversionsBeside(files, again())
		return l
	}}, nil
}

// connect prepares the connection to the API server, and installs the definitions of described kinds, if it was asked
// for. It reports every config error at once if no operator can run. The namespace is that of what is of no upstream.
func (o *runOptions) connect(ctx context.Context, l process.Loaded, logger logr.Logger) (*rest.Config, string, error) {
	cfg, namespace, err := o.server()
	if err != nil {
		return nil, "", command.Refuse(o.streams, l.Problems, err)
	}
	if err := o.installCRDs(ctx, cfg, l.Files, logger); err != nil {
		return nil, "", command.Refuse(o.streams, l.Problems, err)
	}
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return nil, "", command.Refuse(o.streams, l.Problems, err)
	}
	return cfg, namespace, command.Refuse(o.streams, process.Preflight(l.Files, l.Problems, options, logger), nil)
}

// server is the client configuration of a process that logs the API server's warnings, and its namespace.
func (o *runOptions) server() (*rest.Config, string, error) {
	if o.memory != nil {
		return rest.CopyConfig(o.memory), metav1.NamespaceDefault, nil
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return nil, "", err
	}
	cfg.WarningHandler = nil
	namespace, err := o.connection.Namespace()
	return cfg, namespace, err
}

// installCRDs applies the definitions of described kinds, if it was asked for.
func (o *runOptions) installCRDs(ctx context.Context, cfg *rest.Config, files []*load.File, logger logr.Logger) error {
	if !o.installs {
		return nil
	}
	if !slices.ContainsFunc(files, func(f *load.File) bool { return f.Watch.Schema != nil }) {
		return command.Usagef("--install-crds has no effect: no config has watch.schema")
	}
	return install(ctx, cfg, files, logger)
}

// defineKinds installs the definitions of described kinds each time that the configs are read, where the API server is
// in memory. What is wrong with a config, its operator says.
func (o *runOptions) defineKinds(ctx context.Context, files []*load.File, logger logr.Logger) {
	if o.memory == nil {
		return
	}
	if err := install(ctx, o.memory, files, logger); err != nil {
		logger.Error(err, "a kind is not defined as its config describes it")
	}
}

func install(ctx context.Context, cfg *rest.Config, files []*load.File, logger logr.Logger) error {
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return err
	}
	return described.Install(ctx, cfg, files, options, logger)
}
