package generate

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/shards"
)

type rights struct {
	maker
	process  processFlags
	shards   int
	secret   string
	readOnly bool
}

func newRBAC(streams command.IO) *cobra.Command {
	o := &rights{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
		Use:   "rbac -c CONFIG -n NAMESPACE",
		Short: "Print the rights that the configs need, and no more",
		Long: `Print the ServiceAccounts, roles and bindings that "corollary run" needs for the
configs, and no more: one role for each operator and namespace, and a ClusterRole only
for kinds that are watched in all namespaces or are cluster-scoped. They contain no
wildcard, and no right to Secrets unless a config names them.

The rights of an operator with a serviceAccount go to that account, and the process
may impersonate it. What the process itself needs is in separate roles.

Print the rights again when a config changes, and apply them before the config. Keep
the previous ones until nothing is left in kinds or namespaces that the config no
longer names.`,
		Example: `  corollary generate rbac -c app.yaml -n platform | kubectl apply -f -

  # For several replicas, with CustomResourceDefinitions, which have scope and plural of custom kinds
  corollary generate rbac -c /etc/corollary -n platform --leader-election-id my-operator --crds crds/`,
	})
	o.bindOutput(cmd)
	flags := cmd.Flags()
	o.process.bind(flags, "roles and bindings")
	flags.IntVar(&o.shards, "shards", 0,
		"Number of shards of \"corollary run\"; if it is not 0, the rights to their Leases are printed, too")
	flags.StringVar(&o.secret, "webhook-secret", "",
		"Name of the Secret with the webhook's certificate, in --namespace; by default --name and -webhook, where "+
			"conversions are served")
	flags.BoolVar(&o.readOnly, "webhook-secret-read-only", false, "Another writer keeps that Secret, such as cert-manager")
	return cmd
}

func (o *rights) run() error {
	if o.shards < 0 || o.shards > shards.MostShards {
		return command.Usagef("--shards is %d: it must be from 1 to %d, or 0 for one leader that writes alone",
			o.shards, shards.MostShards)
	}
	if o.shards > 0 && o.process.lease == "" {
		return command.Usagef("--shards %d has no effect without --leader-election-id: the names of the Leases begin with it",
			o.shards)
	}
	if o.secret == "" {
		o.secret = o.process.name + "-webhook"
	}
	if err := o.process.check(map[string]string{"webhook-secret": o.secret}); err != nil {
		return err
	}
	files, source, err := o.configs.Offline(o.streams, o.crds)
	if err != nil {
		return err
	}
	conversions, err := o.configs.ValidConversions(files, o.streams)
	if err != nil {
		return err
	}
	rights, err := generate.Rights(files, generate.RBACOptions{
		Kinds: source, Process: o.process.identity(), Lease: o.process.lease, Shards: o.shards > 0,
		Conversions: conversions, Secret: o.secret, SecretReadOnly: o.readOnly,
	})
	if err != nil {
		return err
	}
	command.WriteNotes(o.streams, rights.Notes)
	return o.print("the rights", "What corollary run needs for "+strings.Join(append(operators(files),
		namesOf(conversions)...), ", ")+
		": generated from the configs by corollary generate rbac.",
		append(rights.ServiceAccounts(), rights.Roles(o.process.name)...))
}

// operators are the names of configs.
func operators(files []*load.File) []string {
	var list []string
	for _, f := range files {
		list = append(list, f.Metadata.Name)
	}
	return list
}

func namesOf(conversions []*load.ConversionFile) []string {
	var list []string
	for _, c := range conversions {
		list = append(list, c.Name)
	}
	return list
}
