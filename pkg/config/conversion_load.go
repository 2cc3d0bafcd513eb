package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// ConversionKind is the kind of a file that converts a kind which no operator watches.
	ConversionKind = "Conversion"
	// CertificateKind is the kind of a file that says what was proven of a conversion.
	CertificateKind = "ConversionCertificate"
)

// conversionDocument is a file of kind Conversion.
type conversionDocument struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Conversion.
	Kind string `json:"kind"`
	// Metadata names the conversion.
	Metadata Metadata `json:"metadata"`
	// For is the kind whose objects are converted.
	For ConvertedKind `json:"for"`
	// FieldManager is the field manager under which spec.conversion of the CustomResourceDefinition is written.
	FieldManager string `json:"fieldManager"`
	// Hub is the version that every other served version converts through.
	Hub string `json:"hub"`
	// Spokes are the other served versions.
	Spokes []Spoke `json:"spokes"`
	// Preserve keeps what the target version has no room for, so that it is there again after the way back.
	Preserve *Preserve `json:"preserve,omitempty"`
}

// ConvertedKind is a custom kind in all its versions.
type ConvertedKind struct {
	// Group of the kind.
	Group string `json:"group"`
	// Kind of the objects.
	Kind string `json:"kind"`
}

// ConversionFile is a conversion, and where it was read from.
type ConversionFile struct {
	Conversion
	// Name of the conversion, or of the operator that it belongs to.
	Name string
	For  schema.GroupKind
	// FieldManager writes spec.conversion of the CustomResourceDefinition.
	FieldManager string
	// Certificate is the file with the certificate for it; nil where there is none.
	Certificate *CertificateFile

	file *File
}

// Errorf returns an error at a path of the conversion.
func (c *ConversionFile) Errorf(path, mend, format string, args ...any) *Error {
	return c.file.Errorf(path, mend, format, args...)
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

// LoadConversions reads the conversions among the files that o names, with their certificates, and returns all errors of these.
// Load reads the others.
func LoadConversions(o Options) ([]*ConversionFile, Errors) {
	sources, errs := find(o.Files)
	var list []*ConversionFile
	certificates := map[string]*CertificateFile{}
	for _, s := range sources {
		data, err := s.read(o.Stdin)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		doc := parseDocument(s.path, data)
		f := &File{Path: s.path, document: doc}
		if doc.values["apiVersion"] != APIVersion {
			continue
		}
		switch doc.values["kind"] {
		case ConversionKind:
			c, found := readConversion(f)
			errs, list = append(errs, found...), append(list, c)
		case CertificateKind:
			of, _ := doc.values["of"].(string)
			if other := certificates[of]; other != nil {
				errs = append(errs, f.Errorf("of", "remove one of them", "%s is the certificate for %s, too", other.Path, of))
			}
			certificates[of] = &CertificateFile{Path: s.path, Values: doc.values, Of: of}
		}
	}
	seen := map[schema.GroupKind]string{}
	for _, c := range list {
		c.Certificate = certificates[c.For.String()]
		if other, twice := seen[c.For]; twice {
			errs = append(errs, c.Errorf("for", "remove one of them", "%s converts %s, too", other, c.For))
		}
		seen[c.For] = c.Path()
	}
	return list, errs.Sort()
}

func readConversion(f *File) (*ConversionFile, Errors) {
	var read conversionDocument
	errs := f.decode(&read)
	c := &ConversionFile{
		Conversion: Conversion{Hub: read.Hub, Spokes: read.Spokes, Preserve: read.Preserve}, Name: read.Metadata.Name, FieldManager: read.FieldManager,
		For: schema.GroupKind{Group: read.For.Group, Kind: read.For.Kind}, file: f,
	}
	for path, value := range map[string]string{"metadata.name": c.Name, "for.group": c.For.Group, "for.kind": c.For.Kind, "hub": c.Hub, "fieldManager": c.FieldManager} {
		if value == "" && !f.reported(path) {
			errs = append(errs, f.Errorf(path, fmt.Sprintf("write %s: %s", last(path), examples[path]), "required value is missing"))
		}
	}
	return c, errs
}

var examples = map[string]string{"metadata.name": "crontabs", "for.group": "stable.example.com", "for.kind": "CronTab", "hub": "v1", "fieldManager": "crontab-conversion"}

func last(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}
	return path
}
