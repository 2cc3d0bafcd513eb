package generate

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
)

type flowSchemas struct {
	maker
	process processFlags
	shares  int
}

func newFlowSchema(streams command.IO) *cobra.Command {
	o := &flowSchemas{maker: maker{streams: streams}}
	cmd := o.command(o.run, false, &cobra.Command{
		Use:   "flowschema -c CONFIG -n NAMESPACE",
		Short: "Print the share of the API server that the operators get",
		Long: `Print FlowSchemas and a PriorityLevelConfiguration of API priority and fairness for
"corollary run" and its configs.

By default all ServiceAccounts of a cluster share one priority level: a burst of any of
them delays the operators, and a burst of the operators delays the others. With these
objects the operators have a share of their own, of which they lend half while they do
not need it, and each ServiceAccount that a config names has its own queues.

With --leader-election-id, requests about Leases in the namespace of the process go to
the priority level "leader-election", which every API server has: a Lease that is renewed
too late stops the operators.`,
		Example: `  corollary generate flowschema -c /etc/corollary -n platform --leader-election-id my-operator | kubectl apply -f -`,
	})
	o.bindOutput(cmd)
	o.process.bind(cmd.Flags(), "the objects")
	cmd.Flags().IntVar(&o.shares, "shares", 20,
		"Part of the API server's capacity, beside the shares of other priority levels, which are 245 together by default")
	return cmd
}

func (o *flowSchemas) run() error {
	if err := o.process.check(nil); err != nil {
		return err
	}
	if o.shares < 1 {
		return command.Usagef("--shares is %d: at least 1 is needed", o.shares)
	}
	files, _, err := o.configs.Offline(o.streams, nil)
	if err != nil {
		return err
	}
	list := generate.FlowSchemas(files, generate.FlowOptions{
		Process: o.process.identity(), Name: o.process.name, Lease: o.process.lease != "", Shares: o.shares,
	})
	return o.print("the objects", "API priority and fairness for "+strings.Join(operators(files), ", ")+
		": generated from the configs by corollary generate flowschema.", list)
}
