package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/logging"
)

// Served is a conversion, with the definition as it is now.
type Served struct {
	// Name of the operator or conversion.
	Name string
	Kind schema.GroupKind
	// Converter is nil where the conversion is not proven for that definition, nor was for an earlier one.
	Converter *convert.Converter
	// Unproven says why Converter is one that was proven for earlier schemas only; empty where it is proven. It is served
	// where the definition names it already: otherwise no object could be read.
	Unproven string
	// Missing says which served versions nothing converts; empty for none. The others are converted.
	Missing string
	// FieldManager writes spec.conversion of the definition.
	FieldManager string
	// Verify: spec.conversion is someone else's, and is only compared.
	Verify bool
	// Migrate: stored objects are migrated by this process.
	Migrate bool
	CRD     *apiextensionsv1.CustomResourceDefinition
}

// Interval is how often conversions and definitions are looked at, unless configs are reloaded more often.
const Interval = 10 * time.Second

// isSingle reports whether nothing is left to be converted.
func (s *Served) isSingle() bool { return len(s.CRD.Spec.Versions) == 1 }

func (s *Served) samples(ctx context.Context) []prove.Sample {
	if s.isSingle() {
		return nil
	}
	return prove.Samples(ctx, s.Converter)
}

// Publisher keeps what is served up to date, puts the endpoint into the definitions, and keeps it there. It takes it
// out once a definition has a single version: before that, reads depend on it.
type Publisher struct {
	// Find returns what is to be served, the kinds whose definition cannot be read, and what is wrong with these and
	// others.
	Find func(context.Context) (served []Served, unread []schema.GroupKind, err error)
	// FindProven returns, of the same, those that a certificate proves for the present schemas or for earlier ones. It is
	// called once, at the start: Find may have to prove, which takes seconds. Nil for none.
	FindProven   func(context.Context) []Served
	Client       dynamic.Interface
	Endpoint     Endpoint
	Certificates *Certificates
	// Leads reports whether this process may write.
	Leads func() bool
	// Warn records an event about a definition.
	Warn func(s Served, reason, text string)
	// Migrate begins a migration of stored objects where one is needed; it is called for those whose conversion is
	// published.
	Migrate func(context.Context, Served) error
	// Forget ends what Migrate began to measure of the definition that has the name.
	Forget func(name string)
	// Interval is how often everything is looked at.
	Interval time.Duration
	Log      logr.Logger

	converters sync.Map          // by schema.GroupKind: what was once proven is served to the end of the process
	known      map[string]Served // by name of a definition: what was found last
	measured   map[string]bool   // definitions with a metric, by name
	migrated   map[string]bool   // those that Migrate was called for
	// isAnsweredBy takes the place of isAnswered in tests.
	isAnsweredBy func(context.Context, Served) bool
	unready      atomic.Pointer[string] // why reviews cannot be answered; nil before the first look
	logged       *string                // what was wrong when it was last logged; nil before
	warned       map[[2]string]string   // by name of a definition and reason: what the last event said
}

// Converter returns the converter of a kind; nil for one that is not converted here.
func (p *Publisher) Converter(kind schema.GroupKind) *convert.Converter {
	c, _ := p.converters.Load(kind)
	converter, _ := c.(*convert.Converter)
	return converter
}

// Start works until ctx is done.
func (p *Publisher) Start(ctx context.Context) error {
	p.serveProven(ctx)
	ticker := time.NewTicker(p.Interval)
	defer ticker.Stop()
	for {
		p.report(p.tick(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// serveProven serves what needs no proof now. What is wrong, the first tick reports.
func (p *Publisher) serveProven(ctx context.Context) {
	if p.FindProven == nil {
		return
	}
	served := p.FindProven(ctx)
	p.resume(served)
	p.take(served, nil)
	_ = p.certificate(ctx, false, served)
}

// NeedLeaderElection is false: a standby serves too.
func (p *Publisher) NeedLeaderElection() bool { return false }

// Ready returns nil once the reviews can be answered that the API server may send: in a rollout, processes that cannot
// are not to replace those that can. That a definition cannot be read or written just now does not take this process
// out of the Service.
func (p *Publisher) Ready() error {
	switch {
	case p.Certificates.served.Load() == nil:
		return errNoCertificate
	case p.unready.Load() == nil:
		return errors.New("the conversions are not loaded yet")
	case *p.unready.Load() != "":
		return errors.New(*p.unready.Load())
	}
	return nil
}

// tick does everything once, and returns all that is wrong.
func (p *Publisher) tick(ctx context.Context) error {
	served, unread, err := p.Find(ctx)
	errs := []error{err}
	resumed := p.resume(served)
	unready := p.take(served, unread)
	remembered := p.remember(ctx, served)
	leads := p.Leads()
	errs = append(errs, p.certificate(ctx, leads, slices.Concat(served,
		remembered)))
	if p.Certificates.served.Load() == nil {
		return errors.Join(errs...)
	}
	if err == nil {
		p.forget(served)
	}
	for _, s := range remembered {
		errs = append(errs, p.publish(ctx, s, leads))
	}
	for _, s := range served {
		if s.Converter == nil && !s.isSingle() {
			errs = append(errs, p.keepUnproven(ctx, &s, leads))
			if resumed[s.Kind] && p.isAnsweredByOthers(ctx, s) {
				unready = s.Unproven +
					": until then, this process converts as was proven for the earlier schemas, and stays not ready, " +
					"so that a rollout does not replace a process that has a proof"
			}
			continue
		}
		err := p.publishProven(ctx, s, leads)
		if errs = append(errs, err); err == nil && s.Migrate && s.Converter != nil {
			errs = append(errs, p.Migrate(ctx, s))
		}
		if err != nil && s.Verify && p.Endpoint.isIn(s.CRD) && p.Ready() != nil { // once ready, it stays so
			unready = err.Error()
		}
	}
	p.unready.Store(&unready)
	return errors.Join(errs...)
}

// isAnsweredByOthers reports whether other processes convert, before this one is ready; once ready, it stays so.
func (p *Publisher) isAnsweredByOthers(ctx context.Context, s Served) bool {
	return p.Ready() != nil && p.isAnswered(ctx, s)
}

// publishProven publishes a conversion that is proven for the present schemas.
func (p *Publisher) publishProven(ctx context.Context, s Served, leads bool) error {
	p.warn(leads, s, reasonUnproven, "")
	p.warn(leads, s, reasonIncomplete, s.Missing)
	err := p.publish(ctx, s, leads)
	published.WithLabelValues(s.CRD.Name).Set(map[bool]float64{true: 1}[err == nil && s.Missing == ""])
	return err
}

// keepUnproven has a conversion that was proven for earlier schemas follow the certificate, where API servers ask this
// webhook.
func (p *Publisher) keepUnproven(ctx context.Context, s *Served, leads bool) error {
	published.WithLabelValues(s.CRD.Name).Set(0)
	p.warn(leads, *s, reasonUnproven, s.Unproven)
	if s.Converter = p.Converter(s.Kind); s.Converter == nil || !p.Endpoint.isIn(s.CRD) {
		return nil
	}
	return p.publish(ctx, *s, leads)
}

// remember returns what was found before, is not now, and is served still: reviews arrive here as long as a definition
// names this webhook, whatever has become of its config, or of the right to read it. Its caBundle has to follow the
// certificate.
func (p *Publisher) remember(ctx context.Context, found []Served) (list []Served) {
	known := map[string]Served{}
	for _, s := range found {
		known[s.CRD.Name] = s
	}
	for _, name := range slices.Sorted(maps.Keys(p.known)) {
		if _, ok := known[name]; ok {
			continue
		}
		s := p.known[name]
		crd, err := kinds.ReadDefinition(ctx, p.Client, name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err == nil:
			s.CRD = crd
		}
		if s.Converter = p.Converter(s.Kind); s.Converter != nil && p.Endpoint.isIn(s.CRD) {
			known[name], list = s, append(list, s)
		}
	}
	p.known = known
	return list
}

// forget removes the metrics of definitions that are not served any more.
func (p *Publisher) forget(served []Served) {
	before, migrated := p.measured, p.migrated
	p.measured, p.migrated = map[string]bool{}, map[string]bool{}
	for _, s := range served {
		p.measured[s.CRD.Name] = true
		if s.Migrate {
			p.migrated[s.CRD.Name] = true
		}
	}
	for name := range before {
		if !p.measured[name] {
			published.DeleteLabelValues(name)
		}
	}
	for name := range migrated {
		if !p.migrated[name] {
			p.Forget(name)
		}
	}
}

// resume takes over conversions that were proven for earlier schemas, and that API servers ask for already. A process
// that has a proven one keeps that. What is not proven is left without a converter in served.
func (p *Publisher) resume(served []Served) map[schema.GroupKind]bool {
	resumed := map[schema.GroupKind]bool{}
	for i := range served {
		s := &served[i]
		if s.Unproven == "" {
			continue
		}
		if s.Converter != nil && p.Converter(s.Kind) == nil && p.Endpoint.isIn(s.CRD) {
			p.converters.Store(s.Kind, s.Converter)
		}
		s.Converter, resumed[s.Kind] = nil, p.Converter(s.Kind) != nil
	}
	return resumed
}

// isAnswered reports whether the endpoint converts already. Before this process is ready, a Service sends it nothing:
// others do.
func (p *Publisher) isAnswered(ctx context.Context, s Served) bool {
	if p.isAnsweredBy != nil {
		return p.isAnsweredBy(ctx, s)
	}
	for _, sample := range prove.Samples(ctx, s.Converter) {
		return p.Endpoint.answers(ctx, p.Certificates.Trust(), sample.To, sample.Object) == nil
	}
	return false
}

// The reasons of events.
const (
	reasonUnproven   = "ConversionUnproven"
	reasonIncomplete = "ConversionIncomplete"
	reasonDiffers    = "ConversionDiffers"
)

// warn has the leader record an event when what is wrong with a definition changes; nothing is wrong without text.
func (p *Publisher) warn(leads bool, s Served, reason, text string) {
	key := [2]string{s.CRD.Name, reason}
	if !leads || p.warned[key] == text {
		return
	}
	if p.warned == nil {
		p.warned = map[[2]string]string{}
	}
	if p.warned[key] = text; text != "" {
		p.Warn(s, reason, text)
	}
}

// take serves what is proven, and returns which reviews cannot be answered.
func (p *Publisher) take(served []Served, unread []schema.GroupKind) (unready string) {
	for _, kind := range unread {
		if p.Converter(kind) == nil && p.Ready() != nil { // once ready, it stays so
			unready = fmt.Sprintf("the CustomResourceDefinition of %s cannot be read, and may name this webhook: see the log",
				kind)
		}
	}
	for _, s := range served {
		if s.Converter != nil {
			p.converters.Store(s.Kind, s.Converter)
		} else if p.Converter(s.Kind) == nil && !s.isSingle() && p.Endpoint.isIn(s.CRD) {
			unready = fmt.Sprintf(
				"CustomResourceDefinition %s names this webhook, and its conversion cannot be served: see the log", s.CRD.Name)
		}
	}
	return unready
}

// certificate reads the certificate; the process that may write replaces it in good time.
func (p *Publisher) certificate(ctx context.Context, leads bool, served []Served) error {
	accepts := p.accepts(served)
	if !leads || p.Certificates.ReadOnly {
		return p.Certificates.read(ctx, accepts)
	}
	life := lifetime
	if slices.ContainsFunc(served, func(s Served) bool { return s.Verify }) {
		life = lastingLifetime
	}
	return p.Certificates.keep(ctx, life, accepts)
}

// accepts reports whether all definitions that name this webhook trust a certificate.
func (p *Publisher) accepts(served []Served) func(*pair) bool {
	return func(c *pair) bool {
		return !slices.ContainsFunc(served, func(s Served) bool {
			return p.Endpoint.isIn(s.CRD) && c.verify(s.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle,
				p.Certificates.Hosts, time.Now()) != nil
		})
	}
}

// publish brings one definition to what it should be, once the endpoint has answered a real review.
func (p *Publisher) publish(ctx context.Context, s Served, leads bool) error {
	if s.Verify {
		return p.verify(s, leads)
	}
	trust := p.Certificates.Trust()
	wanted := p.Endpoint.Conversion(s.isSingle(), trust)
	if same(s.CRD.Spec.Conversion, wanted) || !leads {
		return nil
	}
	for _, sample := range s.samples(ctx) {
		if err := p.Endpoint.answers(ctx, trust, sample.To, sample.Object); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: spec.conversion is left as it is: %w", s.CRD.Name, err)
		}
	}
	definition := Definition(s.CRD.Name, wanted)
	definition.SetResourceVersion(s.CRD.ResourceVersion) // a version added meanwhile needs the webhook
	_, err := p.Client.Resource(kinds.DefinitionResource).Apply(ctx, s.CRD.Name, definition,
		metav1.ApplyOptions{FieldManager: s.FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("applying spec.conversion of CustomResourceDefinition %s: %w", s.CRD.Name, err)
	}
	p.Log.Info("spec.conversion is applied", "crd", s.CRD.Name, "strategy", wanted["strategy"],
		"endpoint", p.Endpoint.String())
	return nil
}

// same compares the stanza that a definition has with the one that it should have.
func same(has *apiextensionsv1.CustomResourceConversion, wanted map[string]any) bool {
	return reflect.DeepEqual(has, typed(wanted))
}

// typed is a stanza as the API server has it.
func typed(stanza map[string]any) *apiextensionsv1.CustomResourceConversion {
	c := &apiextensionsv1.CustomResourceConversion{}
	text, err := json.Marshal(stanza)
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		panic("reading spec.conversion: " + err.Error()) // Conversion makes it of texts and numbers: cannot happen
	}
	return c
}

// report logs what is wrong, once until it changes.
func (p *Publisher) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if p.logged != nil && *p.logged == text {
		return
	}
	if p.logged = &text; err != nil {
		logging.Warn(p.Log, "not every conversion is published", "error", err.Error())
	} else {
		p.Log.Info("every conversion is published")
	}
}

// String is the endpoint as people read it.
func (e Endpoint) String() string {
	if e.URL != "" {
		return e.URL + Path
	}
	return fmt.Sprintf("Service %s/%s:%d", e.Namespace, e.Name, e.Port)
}
