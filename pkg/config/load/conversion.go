package load

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/decode"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/validate"
)

// ConversionFile is a conversion and where it was read from: a file of its own, or the key conversion of an operator.
type ConversionFile struct {
	conversion.Conversion
	// Name of the conversion, or of the operator that it belongs to.
	Name string
	For  schema.GroupKind
	// FieldManager writes spec.conversion of the CustomResourceDefinition.
	FieldManager string
	// Certificate is the file with the certificate for it; nil where there is none.
	Certificate *CertificateFile

	file   *File
	prefix string // of the paths of the conversion in the file
}

// Errorf returns an error at a path of the conversion.
func (c *ConversionFile) Errorf(path, fix, format string, args ...any) *config.Error {
	return c.file.Errorf(strings.TrimSuffix(c.prefix+path, "."), fix, format, args...)
}

// Rewritten is the document of kind Conversion with another conversion, or the key conversion of an operator with it.
func (c *ConversionFile) Rewritten(made *conversion.Conversion) any {
	if c.prefix != "" {
		return map[string]any{conversionKey: made}
	}
	return conversion.ConversionDocument{
		APIVersion: config.APIVersion, Kind: conversion.ConversionKind, Metadata: common.Metadata{Name: c.Name},
		For: conversion.ConvertedKind(c.For), FieldManager: c.FieldManager, Conversion: *made,
	}
}

// Digest changes with the conversion and with its certificate.
func (c *ConversionFile) Digest() string {
	text, err := json.Marshal([]any{c.Conversion, c.FieldManager, c.Certificate})
	if err != nil {
		panic("writing the conversion as JSON: " + err.Error()) // its values came from JSON: cannot happen
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Path is the file as it was given.
func (c *ConversionFile) Path() string { return c.file.Path }

// CertificateFile is a file of kind ConversionCertificate.
type CertificateFile struct {
	Path   string
	Values map[string]any
	// Of is the kind that it is about, KIND.GROUP.
	Of string
}

// Conversions returns the conversions of operators, and those of the files that o names, with their certificates. The
// errors are those of files of kind Conversion and ConversionCertificate: Operators reports the others.
func Conversions(o Options, operators []*File) ([]*ConversionFile, config.Errors) {
	var list []*ConversionFile
	for _, f := range operators {
		if f.Conversion != nil && f.Valid() {
			list = append(list, &ConversionFile{
				Conversion: *f.Conversion, Name: f.Metadata.Name, FieldManager: f.Conventions.FieldManager,
				For: schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind).GroupKind(), file: f,
				prefix: conversionKey + ".",
			})
		}
	}
	certificates := map[string]*CertificateFile{}
	sources, _ := find(o.Files)
	var errs config.Errors
	for _, s := range sources {
		data, err := s.read(o.Stdin)
		if err != nil {
			continue // Operators reports it
		}
		f := &File{Document: document.ParseDocument(s.path, data)}
		switch {
		case f.Values["apiVersion"] != config.APIVersion:
		case f.Values["kind"] == conversion.ConversionKind:
			c, found := readConversion(f)
			errs, list = append(errs, found...), append(list, c)
		case f.Values["kind"] == conversion.CertificateKind:
			of, _ := f.Values["of"].(string)
			if other := certificates[of]; other != nil {
				errs = append(errs, f.Errorf("of", "remove one of them", "%s is a certificate for %s too", other.Path, of))
			}
			certificates[of] = &CertificateFile{Path: s.path, Values: f.Values, Of: of}
		}
	}
	seen := map[schema.GroupKind]string{}
	for _, c := range list {
		c.Certificate = certificates[c.For.String()]
		if other, twice := seen[c.For]; twice {
			errs = append(errs, c.Errorf("", "remove one of them", "%s converts %s too", other, c.For))
		}
		seen[c.For] = c.Path()
	}
	return list, errs.Sort()
}

func readConversion(f *File) (*ConversionFile, config.Errors) {
	var read conversion.ConversionDocument
	errs, _ := decode.Decode(f.Document, &read)
	c := &ConversionFile{
		Conversion: read.Conversion, Name: read.Metadata.Name, FieldManager: read.FieldManager,
		For: schema.GroupKind{Group: read.For.Group, Kind: read.For.Kind}, file: f,
	}
	return c, append(errs, validate.CheckConversion(f.Document, &read)...)
}

const conversionKey = "conversion"

// isBeside reports whether a file is one for Conversions or Activations.
func isBeside(values map[string]any) bool {
	return values["apiVersion"] == config.APIVersion && slices.Contains([]any{conversion.ConversionKind,
		conversion.CertificateKind, lock.ActivationKind}, values["kind"])
}
