package load

import (
	"io"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/decode"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/validate"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Operators reads the operators that o names, and the files that these name. It returns every operator that could be
// made out, those with errors too (see File.Valid), in the order of the files, and all errors of all files, sorted.
// Nothing may be run while there are errors.
func Operators(o Options) ([]*File, config.Errors) {
	if len(o.Files) == 0 {
		return nil, config.Errors{{Problem: "no config is given", Fix: "name a file or a directory of files"}}
	}
	sources, errs := find(o.Files)
	overrides, more := readOverrides(o)
	errs = append(errs, more...)

	var files []*File
	unnamed := len(errs) > len(more) // a file that cannot be read may be the one that an override means
	lib := library{}
	var manifests config.Errors
	for _, s := range sources {
		f, found := open(s, o.Stdin, lib)
		if f != nil && s.directory && f.isManifest() {
			manifests = append(manifests, f.identify(config.Kind))
			continue
		}
		errs = append(errs, found...)
		if f != nil {
			files = append(files, f)
		} else if len(found) > 0 {
			unnamed = true
		}
	}
	if len(manifests) == len(sources) { // nothing else is there
		errs = append(errs, manifests...)
	}
	errs = append(errs, assign(files, overrides, unnamed)...)
	for _, f := range files {
		errs = append(errs, f.finish(lib)...)
		errs = append(errs, f.requiresProgram(o.Program)...)
	}
	errs = append(errs, Conflicts(files)...)
	for _, e := range errs {
		for _, f := range files {
			if f.Concerns(e) {
				f.problems = append(f.problems, e)
			}
		}
	}
	return files, errs.Sort()
}

// Concerns reports whether e was found in f: in the config file itself, an override of it, or another file that it is
// made of.
func (f *File) Concerns(e *config.Error) bool {
	if e.File == f.Path {
		return true
	}
	for _, o := range f.overrides {
		if e.File == o.source {
			return true
		}
	}
	return slices.Contains(f.Sources(), e.File)
}

// open reads one file as far as its values. The file is nil where it holds no operator.
func open(s source, stdin io.Reader, lib library) (*File, config.Errors) {
	data, err := s.read(stdin)
	if err != nil {
		return nil, config.Errors{err}
	}
	doc := document.ParseDocument(s.path, data)
	if doc.Values == nil {
		return nil, doc.Errs
	}
	f := &File{Document: doc}
	if isBeside(doc.Values) {
		return nil, nil
	}
	if s.directory && doc.Values["apiVersion"] == config.APIVersion && doc.Values["kind"] == config.ConventionsKind {
		return nil, lib.open(s.path).errs
	}
	if s.directory && f.isManifest() {
		return f, nil
	}
	if err := f.identify(config.Kind); err != nil {
		return nil, append(doc.Errs, err)
	}
	return f, nil
}

// isManifest reports whether a file that is beside configs holds an object of Kubernetes, such as the definition of
// their kind, and not a config with a mistake in its first lines.
func (f *File) isManifest() bool {
	apiVersion, _ := f.Values["apiVersion"].(string)
	kind, _ := f.Values["kind"].(string)
	_, named := f.Values["metadata"].(map[string]any)
	group, _, _ := strings.Cut(config.APIVersion, "/")
	theirs, _, _ := strings.Cut(apiVersion, "/")
	ours := []string{config.Kind, config.ConventionsKind, conversion.ConversionKind,
		conversion.CertificateKind, lock.ActivationKind}
	return named && apiVersion != "" && kind != "" && theirs != group && !slices.Contains(ours, kind) &&
		spelling.Closest(theirs, []string{group}) == ""
}

// assign gives each override to the operator of that name. unnamed reports whether a file could not be read: then an
// operator that seems to be missing may be in it.
func assign(files []*File, overrides []override, unnamed bool) config.Errors {
	var errs config.Errors
	var known []string
	for _, f := range files {
		known = append(known, f.operatorName())
	}
	for _, o := range overrides {
		found := false
		for _, f := range files {
			if f.operatorName() == o.operator {
				f.overrides = append(f.overrides, o)
				found = true
			}
		}
		if !found && !unnamed {
			errs = append(errs, &config.Error{File: o.source, Path: document.Display(o.path),
				Problem: "no operator " + o.operator + " is loaded",
				Fix:     document.FixForUnknown(o.operator, known, "loaded are")})
		}
	}
	return errs
}

// operatorName returns the name that the file gives its operator, which is how overrides address it.
func (f *File) operatorName() string {
	meta, _ := f.Values["metadata"].(map[string]any)
	s, _ := meta["name"].(string)
	return s
}

// finish layers the conventions under the file and the overrides over it, decodes and checks the result.
func (f *File) finish(lib library) config.Errors {
	if name := f.sharedName(); name != "" {
		f.shared = lib.open(f.Place(name))
	}
	values, errs := f.layer()
	f.Values = values
	f.brokenIn(f.shared)
	errs = append(errs, f.sharedErrors()...)
	f.Operator = defaults()
	found, unknown := decode.Decode(f.Document, &f.Operator)
	f.unknown = unknown
	f.fillDefaults()
	return slices.Concat(errs, found, f.readTexts(), f.describe(),
		validate.CheckOperator(f.Document, &f.Operator, f.conventionsUnread()))
}
