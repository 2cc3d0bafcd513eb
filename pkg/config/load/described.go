package load

import (
	"reflect"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/validate"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/simpleschema"
)

// SpecSchema returns the OpenAPI schema of .spec that watch.schema describes, which is shared: never change it. It is
// nil where the config has none, or one with errors.
func (f *File) SpecSchema() map[string]any { return f.described }

// describe reads the schema that watch.schema describes.
func (f *File) describe() config.Errors {
	s := f.Watch.Schema
	if s == nil || s.Spec == nil || f.Source != nil {
		return nil
	}
	p := &document.Problems{Document: f.Document}
	described, wrong := simpleschema.Parse(s.Spec, s.Types)
	for _, one := range wrong {
		at := document.Display(append(fieldpath.New("watch", "schema"), one.Path...))
		if document.CutByComment(f.Index[at].Node) { // YAML took the rest of a text for a comment
			p.Add(at, "quote the whole text", "YAML reads everything after # as a comment")
			continue
		}
		p.Add(at, one.Fix, "%s", one.Text)
	}
	f.described = described
	return p.Errs
}

// describedBy reports what two operators say differently of one kind. An operator without watch.schema takes that of
// another.
func describedBy(f *File, other *File) config.Errors {
	a, b := f.Watch.Schema, other.Watch.Schema
	if a == nil || b == nil || f.Watch.Kind == "" {
		return nil
	}
	kind, others := f.Watch.GVK(), other.Watch.GVK()
	differs := func(at, fix, format string, args ...any) config.Errors {
		return config.Errors{f.Errorf(at, fix, format+" in %s", append(args, other.where(validate.SchemaKey))...)}
	}
	const inFile = "keep the CustomResourceDefinition in a file instead"
	switch {
	case kind.GroupKind() != others.GroupKind() && kind.Group == others.Group && a.Plural == b.Plural:
		return differs(validate.SchemaKey+".plural", "choose another", "%s is the resource of %s", a.Plural, others.Kind)
	case kind.GroupKind() != others.GroupKind():
		return nil
	case kind.Version != others.Version:
		return differs(
			validate.SchemaKey,
			inFile,
			"%s has version %s, and watch.schema describes one version of a kind: it is described in version %s",
			kind.Kind,
			kind.Version,
			others.Version,
		)
	case a.Scope != b.Scope || a.Plural != b.Plural || !reflect.DeepEqual(a.ShortNames, b.ShortNames) ||
		!reflect.DeepEqual(f.described,
			other.described):
		return differs(
			validate.SchemaKey,
			"remove one of them: one is enough for all operators that are loaded together",
			"%s is described differently",
			kind.Kind,
		)
	}
	return nil
}
