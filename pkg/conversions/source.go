package conversions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// Source finds what run has to serve: conversions among the configs, for the kinds as the API server defines them now.
// Its methods may not be called at the same time, except Take and Unconverted.
type Source struct {
	loaded atomic.Pointer[loadedConversions]
	// Client gets no warnings of the API server.
	Client dynamic.Interface
	mapper meta.RESTMapper
	// compiled is what came of each conversion, so that a proof is not repeated while nothing changes.
	compiled map[schema.GroupKind]compiledConversion
	seen     sync.Map // the sighting of each definition, by its name
}

type loadedConversions struct {
	files []*load.ConversionFile
	errs  config.Errors
}

type compiledConversion struct {
	state     string // what it was compiled from
	converter *convert.Converter
	errs      config.Errors
	unproven  string // why the converter is one of earlier schemas; empty where it is not
	missing   string // which served versions it does not convert
}

// NewSource prepares the clients. It sends no requests.
func NewSource(cfg *rest.Config) (*Source, error) {
	cfg = WithoutWarnings(cfg)
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, http)
	if err != nil {
		return nil, fmt.Errorf("preparing the client: %w", err)
	}
	return &Source{Client: client, mapper: mapper}, nil
}

// Take notes what is to be served from now on.
func (s *Source) Take(files []*load.ConversionFile, errs config.Errors) {
	s.loaded.Store(&loadedConversions{files, errs})
}

// Find returns the conversions of kinds that are defined, the kinds of which that is not known, and what is wrong with
// any.
func (s *Source) Find(ctx context.Context) (served []webhook.Served, unread []schema.GroupKind, err error) {
	return s.findBy(ctx, s.compile)
}

// FindProven returns those that need no proof now.
func (s *Source) FindProven(ctx context.Context) []webhook.Served {
	served, _, _ := s.findBy(ctx, compileProven) // Find reports the errors
	return served
}

// compileProven compiles a conversion without proving it: for the present schemas if the certificate is for them, else
// for those that it has recorded.
func compileProven(
	_ context.Context, f *load.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition,
) compiledConversion {
	if c, errs := Compile(f, crd, true); len(errs) == 0 && c.Matches() == nil {
		return compiledConversion{converter: c.Converter}
	}
	return compiledConversion{converter: provenBefore(f, crd), unproven: "the schemas have changed since the proof"}
}

func (s *Source) findBy(
	ctx context.Context, compile func(context.Context, *load.ConversionFile,
		*apiextensionsv1.CustomResourceDefinition) compiledConversion,
) (served []webhook.Served, unread []schema.GroupKind, err error) {
	loaded := s.loaded.Load()
	var errs []error
	for _, p := range loaded.errs {
		errs = append(errs, p)
	}
	for _, f := range loaded.files {
		crd, err := s.Definition(ctx, f)
		if err != nil {
			var undefined *config.Error
			if errs = append(errs, err); !errors.As(err, &undefined) && !apierrors.IsNotFound(err) {
				unread = append(unread, f.For)
			}
			continue
		}
		if len(crd.Spec.Versions) == 1 { // the conversion is for versions that are gone, or still to come
			served = append(served, webhook.Served{Name: f.Name, Kind: f.For, FieldManager: f.FieldManager, CRD: crd,
				Verify: f.Publish == conversion.PublishVerify})
			continue
		}
		c := compile(ctx, f, crd)
		for _, e := range c.errs {
			errs = append(errs, e)
		}
		served = append(served, webhook.Served{Name: f.Name, Kind: f.For, FieldManager: f.FieldManager,
			Converter: c.converter, CRD: crd,
			Unproven: c.unproven, Missing: c.missing, Verify: f.Publish == conversion.PublishVerify,
			Migrate: f.Migrate == conversion.MigrateAuto})
	}
	return served, unread, errors.Join(errs...)
}

// compile returns what it did the last time while nothing has changed. Versions that the config does not convert are
// logged, and do not keep the others from being converted.
func (s *Source) compile(
	ctx context.Context, f *load.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition,
) compiledConversion {
	state := fmt.Sprint(crd.UID, crd.Generation, f.Path(), f.Digest())
	if s.compiled[f.For].state == state {
		return s.compiled[f.For]
	}
	unproven, missing := "", ""
	c, errs := Compile(f, crd, true)
	if len(errs) == 0 {
		for _, v := range c.Versions {
			if v.Served && v.Name != f.Hub && !slices.Contains(c.Converter.Versions(), v.Name) {
				errs = append(errs, f.Errorf("spokes", "add it, or stop serving it", "version %s is served and is missing", v.Name))
			}
		}
		missing = errs.Error()
		if failed := c.Proven(ctx); failed != nil {
			c.Converter, errs = nil, append(errs, failed)
		}
	}
	if c.Converter == nil {
		if c.Converter = provenBefore(f, crd); c.Converter != nil {
			unproven = fmt.Sprintf("the conversion is not proven for the schemas of CustomResourceDefinition %s: %v",
				crd.Name, errs[len(errs)-1])
		}
	}
	if s.compiled == nil {
		s.compiled = map[schema.GroupKind]compiledConversion{}
	}
	s.compiled[f.For] = compiledConversion{state, c.Converter, errs, unproven, missing}
	return s.compiled[f.For]
}

// provenBefore is the conversion as it was proven for earlier schemas, if the certificate is for these rules and has
// those schemas; nil otherwise.
func provenBefore(f *load.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition) *convert.Converter {
	if f.Certificate == nil {
		return nil
	}
	certificate, err := prove.ReadCertificate(f.Certificate.Values)
	if err != nil {
		return nil
	}
	earlier := certificate.Recorded(crd)
	if earlier == nil {
		return nil
	}
	c, errs := Compile(f, earlier, true)
	if len(errs) > 0 {
		return nil
	}
	if err := prove.Matches(c.Converter, &f.Conversion, certificate); err != nil && !errors.Is(err, prove.ErrProof) {
		return nil
	}
	return c.Converter
}

// Definition asks the API server for the definition of a conversion's kind. The error is a config.Error where it has no
// such kind.
func (s *Source) Definition(
	ctx context.Context, f *load.ConversionFile,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := s.mapper.RESTMapping(f.For)
	if meta.IsNoMatchError(err) {
		return nil, f.Errorf("", "install its CustomResourceDefinition", "%s is not known to the API server: %v", f.For, err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", f.For, err)
	}
	name := mapping.Resource.GroupResource().String()
	return kinds.ReadDefinition(ctx, s.Client, name)
}

// WithoutWarnings is for clients that migrate: to each rewritten object the API server would answer that its version is
// deprecated.
func WithoutWarnings(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg
}

// Writers are the field managers of the address in spec.conversion, sorted.
func Writers(crd *apiextensionsv1.CustomResourceDefinition) (managers []string) {
	for _, entry := range crd.ManagedFields {
		var set fieldpath.Set
		if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		if writesConversion(&set) && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	slices.Sort(managers)
	return managers
}

// writesConversion reports whether the address in spec.conversion is among the fields of a manager.
func writesConversion(set *fieldpath.Set) bool {
	url := fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "url")
	service := fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "service", "name")
	return set.Has(url) || set.Has(service)
}
