package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster/local"
)

type devOptions struct {
	runOptions
	crds       []string
	address    string
	kubeconfig string
}

// NewDev returns the command dev.
func NewDev(streams command.IO) *cobra.Command {
	o := &devOptions{runOptions: runOptions{streams: streams, workers: 10, metrics: "0", probes: "0", pprof: "0",
		reload: reloadInterval}}
	cmd := &cobra.Command{
		Use:   "dev -c CONFIG",
		Short: "Run the operators in the configs in a cluster in memory, to try them",
		Long: `Start an API server in this process, and run the operators in the configs in it,
until Ctrl-C. Nothing is needed but kubectl, and nothing is stored: Ctrl-C forgets
all objects. Kinds that configs describe by watch.schema are defined, again when the
config changes; those of others come from --crds.

The API server listens on this machine only, and the command prints the kubeconfig to
use. It has the built-in kinds, the garbage collector and the namespace controller. It runs no
pods, no other controllers, no admission webhooks and no conversion webhooks, knows
no rights, and sets few defaults of built-in kinds. "make cluster" in a clone of the
repository is a real one.`,
		Example: `  corollary dev -c operator.yaml --write-kubeconfig dev.kubeconfig

  # In another terminal
  export KUBECONFIG=$PWD/dev.kubeconfig
  kubectl apply -f shop.yaml
  kubectl get webapps -w`,
		Args: command.NoArguments("configs are named with -c"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.UntilSignal(cmd.Context())
			defer stop()
			return o.dev(ctx)
		},
	}
	o.configs.Bind(cmd)
	command.BindCRDs(cmd, &o.crds)
	cmd.Flags().StringVar(&o.address, "bind-address", "127.0.0.1:0",
		"Loopback address of the API server; port 0: any that is free")
	cmd.Flags().StringVar(&o.kubeconfig, "write-kubeconfig", "",
		"File for the kubeconfig, which is removed at the end; by default one in a new temporary directory")
	o.election.bind(pflag.NewFlagSet("", pflag.ContinueOnError)) // there is nobody to elect: its defaults stay
	bindLogging(cmd, &o.logging)
	encoder := cmd.Flags().Lookup("zap-encoder")
	encoder.DefValue = "console"
	_ = encoder.Value.Set("console") // a word that it has
	return cmd
}

func (o *devOptions) dev(ctx context.Context) (err error) {
	definitions, err := kinds.Definitions(o.crds...)
	if err != nil {
		return err
	}
	cluster, err := local.New(definitions)
	if err != nil {
		return err
	}
	o.memory = local.Control(ctx, cluster)
	kubeconfig, err := local.Serve(ctx, o.memory, o.address)
	if err != nil {
		return err
	}
	path, err := o.writeKubeconfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	fmt.Fprintf(o.streams.Out, `An API server runs in memory: no pods, no webhooks, and Ctrl-C forgets all objects.
In another terminal:

  export KUBECONFIG=%s
  kubectl api-resources

`, path)
	return o.run(ctx, nil)
}

// writeKubeconfig writes it for this user alone, and returns where. A file that is there is left alone: it may be the
// kubeconfig of another cluster.
func (o *devOptions) writeKubeconfig(text []byte) (path string, err error) {
	var file *os.File
	if o.kubeconfig == "" {
		file, err = os.CreateTemp("", "corollary-dev-*.kubeconfig")
	} else {
		file, err = os.OpenFile(o.kubeconfig, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return filepath.Abs(file.Name())
}
