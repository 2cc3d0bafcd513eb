package command

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// LeaseFlags name the Lease of "corollary run".
type LeaseFlags struct{ Name, Namespace string }

// Bind adds the flags. The texts say what the Lease is for, and where it is by default.
func (l *LeaseFlags) Bind(flags *pflag.FlagSet, nameUsage, namespaceUsage string) {
	flags.StringVar(&l.Name, "leader-election-id", "", nameUsage)
	flags.StringVar(&l.Namespace, "leader-election-namespace", "", namespaceUsage)
}

// Check refuses a name that no Lease can have, and a namespace without a name.
func (l *LeaseFlags) Check() error {
	if l.Name == "" && l.Namespace != "" {
		return Usagef("--leader-election-namespace has no effect without --leader-election-id")
	}
	if l.Name == "" {
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(l.Name); len(problems) > 0 {
		return Usagef("--leader-election-id %q is not a valid name for a Lease: %s", l.Name, strings.Join(problems, "; "))
	}
	return nil
}

// In is the namespace of the Lease: the one that is named, else the connection's.
func (l *LeaseFlags) In(c *Connection) (string, error) {
	if l.Namespace != "" {
		return l.Namespace, nil
	}
	return c.Namespace()
}
