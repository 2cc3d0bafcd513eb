package run

import (
	"net"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/process"
)

// webhookFlags say where conversions are served.
type webhookFlags struct {
	command.EndpointFlags
	bind, secret string
	readOnly     bool
}

func (f *webhookFlags) bindFlags(flags *pflag.FlagSet) {
	f.EndpointFlags.BindFlags(flags)
	flags.StringVar(&f.bind, "webhook-bind-address", ":9443",
		"Address on which conversions are served; unused without any")
	flags.StringVar(&f.secret, "webhook-secret", "",
		"NAMESPACE/NAME of the Secret that holds the certificate; it is made and kept up to date")
	flags.BoolVar(&f.readOnly, "webhook-secret-read-only", false,
		"Another writer keeps that Secret, such as cert-manager: it is only read. It must have tls.crt, tls.key and ca.crt")
}

// read reads all the flags.
func (f *webhookFlags) read() (*process.Webhook, error) {
	endpoint, err := f.Endpoint()
	if err != nil {
		return nil, err
	}
	secret, err := command.NamespacedName("--webhook-secret", f.secret)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(f.bind)
	if err != nil {
		return nil, command.Usagef("--webhook-bind-address %q: %v", f.bind, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, command.Usagef("--webhook-bind-address %q: the port is not a number", f.bind)
	}
	return &process.Webhook{Endpoint: endpoint, Secret: secret, ReadOnly: f.readOnly, Host: host, Port: int(number)}, nil
}
