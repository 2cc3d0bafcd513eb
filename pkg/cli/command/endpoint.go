package command

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/webhook"
)

// EndpointFlags say where API servers find the webhook.
type EndpointFlags struct {
	Service, URL string
}

// BindFlags adds the flags.
func (f *EndpointFlags) BindFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Service, "webhook-service", "",
		"NAMESPACE/NAME:PORT of the Service by which API servers reach the webhook")
	flags.StringVar(&f.URL, "webhook-url", "",
		"https://HOST:PORT by which API servers reach the webhook, instead of a Service")
}

// Endpoint reads the flags.
func (f *EndpointFlags) Endpoint() (webhook.Endpoint, error) {
	var e webhook.Endpoint
	switch {
	case (f.Service == "") == (f.URL == ""):
		return e, Usagef("exactly one of --webhook-service and --webhook-url must say where API servers find the webhook " +
			"that converts")
	case f.URL != "":
		e.URL = strings.TrimSuffix(f.URL, "/")
	default:
		at, port, _ := strings.Cut(f.Service, ":")
		name, err := NamespacedName("--webhook-service", at)
		if err != nil {
			return e, err
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, Usagef("--webhook-service is %q: it must be NAMESPACE/NAME:PORT", f.Service)
		}
		e.Namespace, e.Name, e.Port = name.Namespace, name.Name, int32(n)
	}
	_, err := e.Hosts()
	return e, err
}

// NamespacedName reads NAMESPACE/NAME. The error names the flag.
func NamespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, Usagef("%s is %q: it must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
