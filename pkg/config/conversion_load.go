package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// ConversionKind is the kind of a file that converts a kind which no operator watches.
	ConversionKind = "Conversion"
	// CertificateKind is the kind of a file that says what was proven of a conversion.
	CertificateKind = "ConversionCertificate"
)

// ConversionFile is a conversion and where it was read from: a file of its own, or the key conversion of an operator.
type ConversionFile struct {
	Conversion
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
func (c *ConversionFile) Errorf(path, fix, format string, args ...any) *Error {
	return c.file.Errorf(strings.TrimSuffix(c.prefix+path, "."), fix, format, args...)
}

// Rewritten is the document of kind Conversion with another conversion, or the key conversion of an operator with it.
func (c *ConversionFile) Rewritten(made *Conversion) any {
	if c.prefix != "" {
		return map[string]any{conversionKey: made}
	}
	return ConversionDocument{
		APIVersion: APIVersion, Kind: ConversionKind, Metadata: Metadata{Name: c.Name}, For: ConvertedKind(c.For),
		FieldManager: c.FieldManager, Conversion: *made,
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

// LoadConversions returns the conversions of operators, and those of the files that o names, with their certificates. The errors are
// those of files of kind Conversion and ConversionCertificate: Load reports the others.
func LoadConversions(o Options, operators []*File) ([]*ConversionFile, Errors) {
	var list []*ConversionFile
	for _, f := range operators {
		if f.Conversion != nil && f.Valid() {
			list = append(list, &ConversionFile{
				Conversion: *f.Conversion, Name: f.Metadata.Name, FieldManager: f.Conventions.FieldManager,
				For: schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind).GroupKind(), file: f, prefix: conversionKey + ".",
			})
		}
	}
	certificates := map[string]*CertificateFile{}
	sources, _ := find(o.Files)
	var errs Errors
	for _, s := range sources {
		data, err := s.read(o.Stdin)
		if err != nil {
			continue // Load reports it
		}
		f := &File{Path: s.path, document: parseDocument(s.path, data)}
		switch {
		case f.values["apiVersion"] != APIVersion:
		case f.values["kind"] == ConversionKind:
			c, found := readConversion(f)
			errs, list = append(errs, found...), append(list, c)
		case f.values["kind"] == CertificateKind:
			of, _ := f.values["of"].(string)
			if other := certificates[of]; other != nil {
				errs = append(errs, f.Errorf("of", "remove one of them", "%s is a certificate for %s too", other.Path, of))
			}
			certificates[of] = &CertificateFile{Path: s.path, Values: f.values, Of: of}
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

func readConversion(f *File) (*ConversionFile, Errors) {
	var read ConversionDocument
	v := &validator{File: f, errs: f.decode(&read)}
	c := &ConversionFile{
		Conversion: read.Conversion, Name: read.Metadata.Name, FieldManager: read.FieldManager,
		For: schema.GroupKind{Group: read.For.Group, Kind: read.For.Kind}, file: f,
	}
	if v.required("metadata.name", c.Name, "name the conversion") {
		v.form(dnsLabel, "metadata.name", c.Name, c.Name)
	}
	v.required("for.group", c.For.Group, "set the group of the kind, such as stable.example.com")
	v.required("for.kind", c.For.Kind, "set the kind, such as CronTab")
	v.required("fieldManager", c.FieldManager, "set the field manager that writes spec.conversion, such as crontabs.example.com")
	v.conversion("", &c.Conversion)
	return c, v.errs
}

const conversionKey = "conversion"

// conversion checks what can be said without the schemas of the versions.
func (v *validator) conversion(prefix string, c *Conversion) {
	v.required(prefix+"hub", c.Hub, "set the version that all others convert through, such as v1")
	if len(c.Spokes) == 0 {
		v.add(prefix+"spokes", "list the other served versions", "required value is missing")
	}
	if c.Preserve != nil {
		v.required(prefix+"preserve.annotation", c.Preserve.Annotation, "set the name of an annotation")
	}
}

// isBeside reports whether a file is one for LoadConversions or LoadActivations.
func isBeside(values map[string]any) bool {
	return values["apiVersion"] == APIVersion && slices.Contains([]any{ConversionKind, CertificateKind, ActivationKind}, values["kind"])
}
