package generate

import (
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
)

// processFlags name a process of `corollary run` that is to be: what is generated for it depends on that.
type processFlags struct{ name, namespace, account, lease string }

// bind adds the flags; named is what gets names that begin with --name.
func (p *processFlags) bind(flags *pflag.FlagSet, named string) {
	flags.StringVar(&p.name, "name", "corollary", "What the names of "+named+" begin with")
	flags.StringVarP(&p.namespace, "namespace", "n", "", "Namespace that the process runs in; there is no default")
	flags.StringVar(&p.account, "service-account", "", "Name of the ServiceAccount that it runs as; by default --name")
	flags.StringVar(&p.lease, "leader-election-id", "",
		"Name of the Lease of \"corollary run\"; without it there is no leader election")
}

// check refuses what cannot be meant; more are other flags that are names.
func (p *processFlags) check(more map[string]string) error {
	if p.account == "" {
		p.account = p.name
	}
	if p.namespace == "" {
		return command.Usagef("the namespace of the process is missing: add --namespace NAMESPACE")
	}
	given := map[string]string{"name": p.name, "namespace": p.namespace, "service-account": p.account}
	maps.Copy(given, more)
	if p.lease != "" {
		given["leader-election-id"] = p.lease
	}
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		check := validation.IsDNS1123Subdomain
		if flag == "namespace" {
			check = validation.IsDNS1123Label
		}
		if problems := check(given[flag]); len(problems) > 0 {
			return command.Usagef("--%s %q is not a valid name: %s", flag, given[flag], problems[0])
		}
	}
	return nil
}

func (p *processFlags) identity() generate.Identity {
	return generate.Identity{Namespace: p.namespace, Name: p.account}
}
