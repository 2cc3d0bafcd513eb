package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// webhookFlags say where conversions are served.
type webhookFlags struct {
	bind, service, url, secret string
}

func (f *webhookFlags) bindFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.bind, "webhook-bind-address", ":9443", "Address on which conversions are served; unused without any")
	flags.StringVar(&f.service, "webhook-service", "", "NAMESPACE/NAME:PORT of the Service by which API servers reach that address")
	flags.StringVar(&f.url, "webhook-url", "", "https://HOST:PORT by which API servers reach that address, in the place of a Service")
	flags.StringVar(&f.secret, "webhook-secret", "", "NAMESPACE/NAME of the Secret that holds the certificate; it is made and kept up to date")
}

// endpoint reads the flags.
func (f *webhookFlags) endpoint() (webhook.Endpoint, types.NamespacedName, error) {
	var e webhook.Endpoint
	switch {
	case (f.service == "") == (f.url == ""):
		return e, types.NamespacedName{}, usagef("conversions are served: exactly one of --webhook-service and --webhook-url must say where API servers find them")
	case f.url != "":
		e.URL = strings.TrimSuffix(f.url, "/")
	default:
		at, port, _ := strings.Cut(f.service, ":")
		name, err := namespacedName("--webhook-service", at)
		if err != nil {
			return e, name, err
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, name, usagef("--webhook-service is %q: it must be NAMESPACE/NAME:PORT", f.service)
		}
		e.Namespace, e.Name, e.Port = name.Namespace, name.Name, int32(n)
	}
	secret, err := namespacedName("--webhook-secret", f.secret)
	return e, secret, err
}

func namespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, usagef("%s is %q: it must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// conversions reads, compiles and checks the conversions among the configs against the definitions of the API server. Each needs a
// certificate for these very rules and schemas.
func (o *runOptions) conversions(ctx context.Context, cfg *rest.Config) ([]webhook.Served, error) {
	files, problems := config.LoadConversions(config.Options{Files: o.configs.files, Env: o.streams.Env, Stdin: o.streams.In})
	if len(files) == 0 {
		return nil, refuse(o.streams, problems, nil)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	list, err := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, item := range list.Items {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, crd); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", item.GetName(), err)
		}
		definitions = append(definitions, crd)
	}
	var served []webhook.Served
	for _, f := range files {
		c, found := compileConversion(f, definitions)
		if problems = append(problems, found...); len(found) > 0 {
			continue
		}
		if f.Certificate == nil {
			problems = append(problems, f.Errorf("", "run corollary convert prove, and keep the certificate beside the config",
				"the conversion is not proven: there is no %s of %s", config.CertificateKind, f.For))
			continue
		}
		certificate, err := convert.ReadCertificate(f.Certificate.Values)
		if err == nil {
			err = c.converter.Matches(&f.Conversion, certificate)
		}
		if err != nil {
			problems = append(problems, &config.Error{File: f.Certificate.Path, Problem: err.Error()})
			continue
		}
		served = append(served, webhook.Served{File: f, Converter: c.converter, CRD: crdName(f.For, definitions)})
	}
	return served, refuse(o.streams, problems, nil)
}

func crdName(kind schema.GroupKind, definitions []*apiextensionsv1.CustomResourceDefinition) string {
	for _, d := range definitions {
		if d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind {
			return d.Name
		}
	}
	return ""
}

// serveConversions adds to the manager what serves conversions: the endpoint, its certificate, and what publishes it.
func (o *runOptions) serveConversions(cfg *rest.Config, mgr manager.Manager, served []webhook.Served, leads func() bool, log logr.Logger) error {
	endpoint, secret, err := o.webhook.endpoint()
	if err != nil {
		return err
	}
	hosts, err := endpoint.Hosts()
	if err != nil {
		return err
	}
	secrets, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	certificates := &webhook.Certificates{Secrets: secrets, At: secret, Hosts: hosts, Log: log}
	host, port, err := net.SplitHostPort(o.webhook.bind)
	if err != nil {
		return usagef("--webhook-bind-address %q: %v", o.webhook.bind, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return usagef("--webhook-bind-address %q: the port is not a number", o.webhook.bind)
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: host, Port: number, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate, c.MinVersion = certificates.GetCertificate, tls.VersionTLS12
	}}})
	server.Register(webhook.Path, &convert.Handler{Converters: func(kind schema.GroupKind) *convert.Converter {
		for _, s := range served {
			if s.File.For == kind {
				return s.Converter
			}
		}
		return nil
	}})
	publisher := &webhook.Publisher{
		Client: client, Endpoint: endpoint, Certificates: certificates, Served: served, Leads: leads, Log: log.WithName("conversion"),
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook: %w", err)
	}
	if err := mgr.Add(publisher); err != nil {
		return fmt.Errorf("adding the webhook: %w", err)
	}
	if err := mgr.AddReadyzCheck("conversions", func(*http.Request) error { return publisher.Ready() }); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}
