package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// endpointFlags say where API servers find the webhook.
type endpointFlags struct {
	service, url string
}

func (f *endpointFlags) bindFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.service, "webhook-service", "", "NAMESPACE/NAME:PORT of the Service by which API servers reach the webhook")
	flags.StringVar(&f.url, "webhook-url", "", "https://HOST:PORT by which API servers reach the webhook, instead of a Service")
}

// endpoint reads the flags.
func (f *endpointFlags) endpoint() (webhook.Endpoint, error) {
	var e webhook.Endpoint
	switch {
	case (f.service == "") == (f.url == ""):
		return e, command.Usagef("exactly one of --webhook-service and --webhook-url must say where API servers find the webhook that converts")
	case f.url != "":
		e.URL = strings.TrimSuffix(f.url, "/")
	default:
		at, port, _ := strings.Cut(f.service, ":")
		name, err := namespacedName("--webhook-service", at)
		if err != nil {
			return e, err
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, command.Usagef("--webhook-service is %q: it must be NAMESPACE/NAME:PORT", f.service)
		}
		e.Namespace, e.Name, e.Port = name.Namespace, name.Name, int32(n)
	}
	_, err := e.Hosts()
	return e, err
}

func namespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, command.Usagef("%s is %q: it must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
