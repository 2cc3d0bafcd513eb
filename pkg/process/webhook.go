package process

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/engine/fence"
	"github.com/corollary-dev/corollary/pkg/migrate"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// Webhook is where conversions are served, and where API servers find that.
type Webhook struct {
	Endpoint webhook.Endpoint
	// Secret holds the certificate; ReadOnly: another writer keeps it.
	Secret   types.NamespacedName
	ReadOnly bool
	// Host and Port are listened on.
	Host string
	Port int
}

// serveConversions adds to the manager what serves conversions: the endpoint, its certificate, and what publishes it.
func (o *Options) serveConversions(
	cfg *rest.Config, mgr manager.Manager, source *conversions.Source, leads func() bool,
) error {
	w := o.Webhook
	if w == nil {
		return nil
	}
	hosts, err := w.Endpoint.Hosts()
	if err != nil {
		return err
	}
	secrets, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	interval := webhook.Interval
	if o.Reload > 0 {
		interval = min(interval, o.Reload)
	}
	recorder := func(name string) events.EventRecorder {
		return fence.Recorder{EventRecorder: mgr.GetEventRecorder(name)}
	}
	auto := &migrate.Auto{Client: source.Client, Rate: migrate.DefaultRate, Leads: leads,
		Log: o.Log.WithName("migration"), Recorder: recorder}
	publisher := &webhook.Publisher{
		Migrate: func(ctx context.Context, s webhook.Served) error {
			return auto.Consider(ctx, migrate.Candidate{CRD: s.CRD, Name: s.Name, FieldManager: s.FieldManager,
				Converts: s.Converter.Has, Converter: s.Converter})
		},
		Warn:     func(s webhook.Served, reason, text string) { warnOf(recorder(s.Name), s, reason, text) },
		Interval: interval, Forget: auto.Forget,
		Find: source.Find, FindProven: source.FindProven,
		Client: source.Client, Endpoint: w.Endpoint, Leads: leads, Log: o.Log.WithName("conversion"),
		Certificates: &webhook.Certificates{Secrets: secrets, At: w.Secret, Hosts: hosts, ReadOnly: w.ReadOnly, Log: o.Log},
	}
	server := w.server(publisher)
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
func (w *Webhook) server(publisher *webhook.Publisher) ctrlwebhook.Server {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: w.Host, Port: w.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate, c.MinVersion = publisher.Certificates.GetCertificate, tls.VersionTLS12
		}}})
	server.Register(webhook.Path, &webhook.Handler{Converters: publisher.Converter, Observe: webhook.Observe})
	return server
}
