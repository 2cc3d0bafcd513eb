package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/migrate"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// webhookFlags say where conversions are served.
type webhookFlags struct {
	command.EndpointFlags
	bind, secret string
	readOnly     bool
}

func (f *webhookFlags) bindFlags(flags *pflag.FlagSet) {
	f.EndpointFlags.BindFlags(flags)
	flags.StringVar(&f.bind, "webhook-bind-address", ":9443", "Address on which conversions are served; unused without any")
	flags.StringVar(&f.secret, "webhook-secret", "", "NAMESPACE/NAME of the Secret that holds the certificate; it is made and kept up to date")
	flags.BoolVar(&f.readOnly, "webhook-secret-read-only", false,
		"Another writer keeps that Secret, such as cert-manager: it is only read. It must have tls.crt, tls.key and ca.crt")
}

// serveConversions adds to the manager what serves conversions: the endpoint, its certificate, and what publishes it.
func (o *runOptions) serveConversions(
	cfg *rest.Config, mgr manager.Manager, source *conversions.Source, leads func() bool, log logr.Logger,
) error {
	if source.Empty() && o.webhook.Service+o.webhook.Url+o.webhook.secret == "" {
		return nil
	}
	endpoint, err := o.webhook.Endpoint()
	if err != nil {
		return err
	}
	secret, err := command.NamespacedName("--webhook-secret", o.webhook.secret)
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
	interval := webhook.Interval
	if o.reload > 0 {
		interval = min(interval, o.reload)
	}
	recorder := func(name string) events.EventRecorder {
		return engine.Recorder{EventRecorder: mgr.GetEventRecorder(name)}
	}
	auto := &migrate.Auto{Client: source.Client, Rate: defaultMigrationRate, Leads: leads, Log: log.WithName("migration"), Recorder: recorder}
	publisher := &webhook.Publisher{
		Migrate: func(ctx context.Context, s webhook.Served) error {
			return auto.Consider(ctx, migrate.Candidate{CRD: s.CRD, Name: s.Name, FieldManager: s.FieldManager,
				Converts: s.Converter.Has, Converter: s.Converter})
		},
		Warn:     func(s webhook.Served, reason, text string) { warnOf(recorder(s.Name), s, reason, text) },
		Interval: interval, Forget: auto.Forget,
		Find: source.Find, FindProven: source.FindProven,
		Client: source.Client, Endpoint: endpoint, Leads: leads, Log: log.WithName("conversion"),
		Certificates: &webhook.Certificates{Secrets: secrets, At: secret, Hosts: hosts, ReadOnly: o.webhook.readOnly, Log: log},
	}
	server, err := o.webhook.server(publisher)
	if err != nil {
		return err
	}
	for _, part := range []manager.Runnable{server, publisher} {
		if err := mgr.Add(part); err != nil {
			return fmt.Errorf("adding the webhook: %w", err)
		}
	}
	if err := mgr.AddReadyzCheck("conversions", func(*http.Request) error { return publisher.Ready() }); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

// warnOf records an event about the definition of a conversion.
func warnOf(recorder events.EventRecorder, s webhook.Served, reason, text string) {
	about := s.CRD.DeepCopy()
	about.APIVersion, about.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	recorder.Eventf(about, nil, corev1.EventTypeWarning, reason, "Verify", "%s", text)
}

// server answers the reviews of the API server.
func (f *webhookFlags) server(publisher *webhook.Publisher) (ctrlwebhook.Server, error) {
	host, port, err := net.SplitHostPort(f.bind)
	if err != nil {
		return nil, command.Usagef("--webhook-bind-address %q: %v", f.bind, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, command.Usagef("--webhook-bind-address %q: the port is not a number", f.bind)
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: host, Port: int(number), TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate, c.MinVersion = publisher.Certificates.GetCertificate, tls.VersionTLS12
	}}})
	server.Register(webhook.Path, &convert.Handler{Converters: publisher.Converter, Observe: webhook.Observe})
	return server, nil
}
