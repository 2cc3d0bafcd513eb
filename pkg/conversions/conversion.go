// Package conversions has the conversions of configs for the definitions of their kinds: compiled, and proven by the
// certificates beside them. A Source finds those that a process has to serve.
package conversions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Conversion is a config with what it was compiled to.
type Conversion struct {
	File      *load.ConversionFile
	Converter *convert.Converter
	Versions  []*kinds.Version
	CRD       *apiextensionsv1.CustomResourceDefinition
}

// Version is nil where it is not served.
func (c *Conversion) Version(name string) *kinds.Version {
	n := slices.IndexFunc(c.Versions, func(v *kinds.Version) bool { return v.Name == name })
	if n < 0 {
		return nil
	}
	return c.Versions[n]
}

// Compile compiles a conversion against the definition of its kind. The errors have the places in the config.
func Compile(
	f *load.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition, partial bool,
) (*Conversion, config.Errors) {
	versions, err := kinds.Versions(crd)
	if err != nil {
		return &Conversion{}, config.Errors{f.Errorf("", "fix CustomResourceDefinition "+crd.Name, "%v", err)}
	}
	made, problems := convert.Compile(
		&f.Conversion,
		convert.Options{Kind: f.For, Versions: versions, Stored: kinds.StoredVersion(crd),
			Namespaced: kinds.IsNamespaced(crd), Partial: partial},
	)
	var errs config.Errors
	for _, p := range problems {
		errs = append(errs, f.Errorf(p.Path, "", "%s", p.Message))
	}
	return &Conversion{File: f, Converter: made, Versions: versions, CRD: crd}, errs
}

// Proven returns nil where the certificate beside the config is for these rules and schemas. Where only schemas or the
// proof have changed since, it is done again here, since without a conversion no object of the kind could be read.
func (c *Conversion) Proven(ctx context.Context) *config.Error {
	const fix = "run corollary convert prove with --output FILE, and give that file with -c, too"
	if c.File.Certificate == nil {
		return c.File.Errorf("", fix, "the conversion is not proven: there is no %s for %s",
			conversion.CertificateKind, c.File.For)
	}
	err := c.Matches()
	if errors.Is(err, prove.ErrSchemas) || errors.Is(err, prove.ErrProof) {
		certificate, _ := prove.ReadCertificate(c.File.Certificate.Values) // matches has read it
		proof, failed := prove.Prove(ctx, c.Converter, prove.Options{Seed: certificate.Seed, Objects: ObjectsToProve})
		if failed == nil && proof.Valid() {
			return nil
		}
	}
	if err != nil {
		return &config.Error{File: c.File.Certificate.Path, Problem: err.Error(), Fix: fix}
	}
	return nil
}

// Matches compares the certificate beside the config with the conversion.
func (c *Conversion) Matches() error {
	if c.File.Certificate == nil {
		return fmt.Errorf("there is no %s for %s", conversion.CertificateKind, c.File.For)
	}
	certificate, err := prove.ReadCertificate(c.File.Certificate.Values)
	if err != nil {
		return err
	}
	return prove.Matches(c.Converter, &c.File.Conversion, certificate)
}

// DefinitionFor is the definition of a conversion's kind; nil where it is not among them.
func DefinitionFor(
	list []*apiextensionsv1.CustomResourceDefinition, f *load.ConversionFile,
) *apiextensionsv1.CustomResourceDefinition {
	i := slices.IndexFunc(list, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == f.For.Group && d.Spec.Names.Kind == f.For.Kind
	})
	if i < 0 {
		return nil
	}
	return list[i]
}

// ObjectsToProve is how many random objects a proof makes for each pair of versions by default.
const ObjectsToProve = 10_000

// Of compiles the conversion of a kind; nil for none.
func Of(files []*load.ConversionFile, crd *apiextensionsv1.CustomResourceDefinition) (*Conversion, config.Errors) {
	for _, f := range files {
		if f.For.Group == crd.Spec.Group && f.For.Kind == crd.Spec.Names.Kind {
			return Compile(f, crd, true)
		}
	}
	return nil, nil
}
