package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// conversion is a config with what it was compiled to.
type conversion struct {
	file      *config.ConversionFile
	converter *convert.Converter
	versions  []*kinds.Version
	crd       *apiextensionsv1.CustomResourceDefinition
}

// version is nil where it is not served.
func (c *conversion) version(name string) *kinds.Version {
	n := slices.IndexFunc(c.versions, func(v *kinds.Version) bool { return v.Name == name })
	if n < 0 {
		return nil
	}
	return c.versions[n]
}

// loadConversions reads the conversions among the configs.
func (f *configFlags) loadConversions(streams func() IO) ([]*config.ConversionFile, config.Errors, error) {
	files, problems, err := f.load(streams())
	if err != nil {
		return nil, nil, err
	}
	list, more := f.conversionsBeside(files, streams())
	return list, append(problems, more...), nil
}

// conversionsBeside returns the conversions of operators that are loaded, and those in files beside them.
func (f *configFlags) conversionsBeside(operators []*config.File, streams IO) ([]*config.ConversionFile, config.Errors) {
	return config.LoadConversions(config.Options{Files: f.files, Stdin: streams.In}, operators)
}

// compileConversion compiles a conversion against the definition of its kind. The errors have the places in the config.
func compileConversion(
	f *config.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition, partial bool,
) (*conversion, config.Errors) {
	versions, err := kinds.Versions(crd)
	if err != nil {
		return &conversion{}, config.Errors{f.Errorf("", "fix CustomResourceDefinition "+crd.Name, "%v", err)}
	}
	made, problems := convert.Compile(
		&f.Conversion,
		convert.Options{Kind: f.For, Versions: versions, Stored: kinds.StoredVersion(crd), Namespaced: kinds.IsNamespaced(crd), Partial: partial},
	)
	var errs config.Errors
	for _, p := range problems {
		errs = append(errs, f.Errorf(p.Path, "", "%s", p.Message))
	}
	return &conversion{file: f, converter: made, versions: versions, crd: crd}, errs
}

// proven returns nil where the certificate beside the config is for these rules and schemas. Where only schemas or the proof have changed
// since, it is done again here, since without a conversion no object of the kind could be read.
func (c *conversion) proven(ctx context.Context) *config.Error {
	const fix = "run corollary convert prove with --output FILE, and give that file with -c, too"
	if c.file.Certificate == nil {
		return c.file.Errorf("", fix, "the conversion is not proven: there is no %s for %s", config.CertificateKind, c.file.For)
	}
	err := c.matches()
	if errors.Is(err, convert.ErrSchemas) || errors.Is(err, convert.ErrProof) {
		certificate, _ := convert.ReadCertificate(c.file.Certificate.Values) // matches has read it
		proof, failed := c.converter.Prove(ctx, convert.ProofOptions{Seed: certificate.Seed, Objects: objectsToProve})
		if failed == nil && proof.Valid() {
			return nil
		}
	}
	if err != nil {
		return &config.Error{File: c.file.Certificate.Path, Problem: err.Error(), Fix: fix}
	}
	return nil
}

// matches compares the certificate beside the config with the conversion.
func (c *conversion) matches() error {
	if c.file.Certificate == nil {
		return fmt.Errorf("there is no %s for %s", config.CertificateKind, c.file.For)
	}
	certificate, err := convert.ReadCertificate(c.file.Certificate.Values)
	if err != nil {
		return err
	}
	return c.converter.Matches(&c.file.Conversion, certificate)
}

// definitionFor is the definition of a conversion's kind; nil where it is not among them.
func definitionFor(list []*apiextensionsv1.CustomResourceDefinition, f *config.ConversionFile) *apiextensionsv1.CustomResourceDefinition {
	i := slices.IndexFunc(list, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == f.For.Group && d.Spec.Names.Kind == f.For.Kind
	})
	if i < 0 {
		return nil
	}
	return list[i]
}

// objectsToProve is how many random objects a proof makes for each pair of versions by default.
const objectsToProve = 10_000

// conversionSource finds what run has to serve: conversions among the configs, for the kinds as the API server defines them now.
type conversionSource struct {
	loaded atomic.Pointer[loadedConversions]
	client dynamic.Interface
	mapper meta.RESTMapper
	// compiled is what came of each conversion, so that a proof is not repeated while nothing changes.
	compiled map[schema.GroupKind]compiledConversion
}

type loadedConversions struct {
	files []*config.ConversionFile
	errs  config.Errors
}

type compiledConversion struct {
	state     string // what it was compiled from
	converter *convert.Converter
	errs      config.Errors
	unproven  string // why the converter is one of earlier schemas; empty where it is not
	missing   string // which served versions it does not convert
}

// connect prepares the clients.
func (s *conversionSource) connect(cfg *rest.Config) error {
	cfg = withoutWarnings(cfg)
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, http)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	s.client, s.mapper = client, mapper
	return nil
}

// withoutWarnings is for clients that migrate: to each rewritten object the API server would answer that its version is deprecated.
func withoutWarnings(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg
}

// take notes what is to be served from now on.
func (s *conversionSource) take(files []*config.ConversionFile, errs config.Errors) {
	s.loaded.Store(&loadedConversions{files, errs})
}

// find returns the conversions of kinds that are defined, the kinds of which that is not known, and what is wrong with any.
func (s *conversionSource) find(ctx context.Context) (served []webhook.Served, unread []schema.GroupKind, err error) {
	return s.findBy(ctx, s.compile)
}

// findProven returns those that need no proof now.
func (s *conversionSource) findProven(ctx context.Context) []webhook.Served {
	served, _, _ := s.findBy(ctx, compileProven) // find reports the errors
	return served
}

// compileProven compiles a conversion without proving it: for the present schemas if the certificate is for them, else for those that it
// has recorded.
func compileProven(_ context.Context, f *config.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition) compiledConversion {
	if c, errs := compileConversion(f, crd, true); len(errs) == 0 && c.matches() == nil {
		return compiledConversion{converter: c.converter}
	}
	return compiledConversion{converter: provenBefore(f, crd), unproven: "the schemas have changed since the proof"}
}

func (s *conversionSource) findBy(
	ctx context.Context, compile func(context.Context, *config.ConversionFile, *apiextensionsv1.CustomResourceDefinition) compiledConversion,
) (served []webhook.Served, unread []schema.GroupKind, err error) {
	loaded := s.loaded.Load()
	var errs []error
	for _, p := range loaded.errs {
		errs = append(errs, p)
	}
	for _, f := range loaded.files {
		crd, err := s.definition(ctx, f)
		if err != nil {
			var undefined *config.Error
			if errs = append(errs, err); !errors.As(err, &undefined) && !apierrors.IsNotFound(err) {
				unread = append(unread, f.For)
			}
			continue
		}
		if len(crd.Spec.Versions) == 1 { // the conversion is for versions that are gone, or still to come
			served = append(served, webhook.Served{Name: f.Name, Kind: f.For, FieldManager: f.FieldManager, CRD: crd,
				Verify: f.Publish == config.PublishVerify})
			continue
		}
		c := compile(ctx, f, crd)
		for _, e := range c.errs {
			errs = append(errs, e)
		}
		served = append(served, webhook.Served{Name: f.Name, Kind: f.For, FieldManager: f.FieldManager, Converter: c.converter, CRD: crd,
			Unproven: c.unproven, Missing: c.missing, Verify: f.Publish == config.PublishVerify, Migrate: f.Migrate == config.MigrateAuto})
	}
	return served, unread, errors.Join(errs...)
}

// compile returns what it did the last time while nothing has changed. Versions that the config does not convert are logged, and do not
// keep the others from being converted.
func (s *conversionSource) compile(
	ctx context.Context, f *config.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition,
) compiledConversion {
	state := fmt.Sprint(crd.UID, crd.Generation, f.Path(), f.Digest())
	if s.compiled[f.For].state == state {
		return s.compiled[f.For]
	}
	unproven, missing := "", ""
	c, errs := compileConversion(f, crd, true)
	if len(errs) == 0 {
		for _, v := range c.versions {
			if v.Served && v.Name != f.Hub && !slices.Contains(c.converter.Versions(), v.Name) {
				errs = append(errs, f.Errorf("spokes", "add it, or stop serving it", "version %s is served and is missing", v.Name))
			}
		}
		missing = errs.Error()
		if failed := c.proven(ctx); failed != nil {
			c.converter, errs = nil, append(errs, failed)
		}
	}
	if c.converter == nil {
		if c.converter = provenBefore(f, crd); c.converter != nil {
			unproven = fmt.Sprintf("the conversion is not proven for the schemas of CustomResourceDefinition %s: %v", crd.Name, errs[len(errs)-1])
		}
	}
	if s.compiled == nil {
		s.compiled = map[schema.GroupKind]compiledConversion{}
	}
	s.compiled[f.For] = compiledConversion{state, c.converter, errs, unproven, missing}
	return s.compiled[f.For]
}

// provenBefore is the conversion as it was proven for earlier schemas, if the certificate is for these rules and has those schemas; nil
// otherwise.
func provenBefore(f *config.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition) *convert.Converter {
	if f.Certificate == nil {
		return nil
	}
	certificate, err := convert.ReadCertificate(f.Certificate.Values)
	if err != nil {
		return nil
	}
	earlier := certificate.Recorded(crd)
	if earlier == nil {
		return nil
	}
	c, errs := compileConversion(f, earlier, true)
	if len(errs) > 0 {
		return nil
	}
	if err := c.converter.Matches(&f.Conversion, certificate); err != nil && !errors.Is(err, convert.ErrProof) {
		return nil
	}
	return c.converter
}

// definition asks the API server for the definition of a conversion's kind. The error is a config.Error where it has no such kind.
func (s *conversionSource) definition(ctx context.Context, f *config.ConversionFile) (*apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := s.mapper.RESTMapping(f.For)
	if meta.IsNoMatchError(err) {
		return nil, f.Errorf("", "install its CustomResourceDefinition", "%s is not known to the API server: %v", f.For, err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", f.For, err)
	}
	name := mapping.Resource.GroupResource().String()
	return kinds.ReadDefinition(ctx, s.client, name)
}
