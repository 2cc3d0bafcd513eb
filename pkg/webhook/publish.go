package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/convert"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Served is a conversion that is served.
type Served struct {
	File      *config.ConversionFile
	Converter *convert.Converter
	// CRD is the name of the definition.
	CRD string
}

// Publisher puts the endpoint into the definitions of what is served, and keeps it there. It never takes it out: while more than one
// version is served every read of another one depends on it.
type Publisher struct {
	Client       dynamic.Interface
	Endpoint     Endpoint
	Certificates *Certificates
	Served       []Served
	// Manual has the definitions only verified: whoever owns them publishes the endpoint.
	Manual bool
	// Leads tells whether this process may write.
	Leads func() bool
	// Interval is how often everything is looked at; 10 seconds by default.
	Interval time.Duration
	Log      logr.Logger

	mu       sync.Mutex
	problems map[string]string // by definition
}

// Start keeps certificate and definitions until ctx is done.
func (p *Publisher) Start(ctx context.Context) error {
	if p.Interval == 0 {
		p.Interval = 10 * time.Second
	}
	ticker := time.NewTicker(p.Interval)
	defer ticker.Stop()
	for {
		p.tick(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection is false: a standby serves too, and reads the certificate.
func (p *Publisher) NeedLeaderElection() bool { return false }

func (p *Publisher) tick(ctx context.Context) {
	leads := p.Leads()
	live := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, s := range p.Served {
		crd, err := p.read(ctx, s.CRD)
		if err != nil {
			p.report(s.CRD, err)
			continue
		}
		live[s.CRD] = crd
	}
	if err := p.certificate(ctx, leads, live); err != nil {
		for _, s := range p.Served {
			p.report(s.CRD, err)
		}
		return
	}
	for _, s := range p.Served {
		if crd := live[s.CRD]; crd != nil {
			p.report(s.CRD, p.publish(ctx, s, crd, leads))
		}
	}
}

// certificate reads the certificate, and keeps it where this process leads.
func (p *Publisher) certificate(ctx context.Context, leads bool, live map[string]*apiextensionsv1.CustomResourceDefinition) error {
	if !leads {
		return p.Certificates.Read(ctx)
	}
	return p.Certificates.Keep(ctx, published(live))
}

// published is the caBundle that all definitions have; nil where they differ.
func published(live map[string]*apiextensionsv1.CustomResourceDefinition) []byte {
	var common []byte
	for _, crd := range live {
		c := crd.Spec.Conversion
		if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
			return nil
		}
		if bundle := c.Webhook.ClientConfig.CABundle; common == nil {
			common = bundle
		} else if string(common) != string(bundle) {
			return nil
		}
	}
	return common
}

func (p *Publisher) read(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	u, err := p.Client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, json.Unmarshal(text, crd)
}

// publish brings one definition to what it should be, once the endpoint has answered a real review.
func (p *Publisher) publish(ctx context.Context, s Served, crd *apiextensionsv1.CustomResourceDefinition, leads bool) error {
	trust := p.Certificates.Trust()
	wanted := p.Endpoint.conversion(trust)
	have, err := json.Marshal(crd.Spec.Conversion)
	if err != nil {
		return err
	}
	var is map[string]any
	if err := json.Unmarshal(have, &is); err != nil {
		return err
	}
	if reflect.DeepEqual(normal(is), normal(wanted)) {
		return nil
	}
	if p.Manual {
		return errors.New("spec.conversion is not what this process serves: apply what corollary generate crd-conversion prints")
	}
	if !leads {
		return nil
	}
	for _, sample := range s.Converter.Samples(ctx) {
		if err := p.Endpoint.answers(ctx, trust, sample.To, sample.Object); err != nil {
			return err
		}
	}
	apply := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": s.CRD},
		"spec": map[string]any{"conversion": wanted},
	}}
	_, err = p.Client.Resource(definitions).Apply(ctx, s.CRD, apply, metav1.ApplyOptions{FieldManager: s.File.FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("applying spec.conversion of CustomResourceDefinition %s: %w", s.CRD, err)
	}
	p.Log.Info("the conversion is published", "crd", s.CRD, "endpoint", p.Endpoint.String())
	return nil
}

// normal brings numbers and texts of a stanza to one form.
func normal(v map[string]any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	_ = json.Unmarshal(text, &out) // it was JSON just now
	return out
}

// report notes how a definition is doing; what changes is logged once.
func (p *Publisher) report(crd string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.problems == nil {
		p.problems = map[string]string{}
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if before, known := p.problems[crd]; known && before == text {
		return
	}
	if p.problems[crd] = text; err != nil {
		p.Log.Error(err, "the conversion is not published", "crd", crd)
	}
}

// Ready returns nil once every definition has the endpoint. It is a readiness check.
func (p *Publisher) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.Served {
		if text, known := p.problems[s.CRD]; !known {
			errs = append(errs, fmt.Errorf("conversion of %s: not published yet", s.CRD))
		} else if text != "" {
			errs = append(errs, fmt.Errorf("conversion of %s: %s", s.CRD, text))
		}
	}
	return errors.Join(errs...)
}

// String is the endpoint as people read it.
func (e Endpoint) String() string {
	if e.URL != "" {
		return e.URL + Path
	}
	return fmt.Sprintf("Service %s/%s:%d", e.Namespace, e.Name, e.Port)
}
