package config

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/simpleschema"
)

const schemaKey = "watch.schema"

func (w *Watch) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(w.APIVersion, w.Kind)
}

// SpecSchema returns the OpenAPI schema of .spec that watch.schema describes, which is shared: never change it. It is nil where the config
// has none, or one with errors.
func (f *File) SpecSchema() map[string]any { return f.described }

// pluralOf is the regular name of a kind's resource; empty for no kind.
func pluralOf(apiVersion, kind string) string {
	if kind == "" {
		return ""
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return plural.Resource
}

var resourceName = syntax{
	"a name of a resource",
	"write at most 63 small letters, digits and -, beginning with a letter",
	validation.IsDNS1035Label,
}

// kindSchema checks the description of the upstream's kind.
func (v *validator) kindSchema() {
	s := v.Watch.Schema
	if s == nil {
		return
	}
	v.describable()
	v.form(resourceName, schemaKey+".plural", s.Plural, s.Plural)
	names := map[string]bool{s.Plural: true, strings.ToLower(v.Watch.Kind): true}
	for i, name := range s.ShortNames {
		at := fmt.Sprintf("%s.shortNames[%d]", schemaKey, i)
		if v.form(resourceName, at, name, name) && names[name] {
			v.add(at, "remove it", "%q is a name of the resource already", name)
		}
		names[name] = true
	}
	if s.Spec == nil {
		v.add(schemaKey+".spec", "write the fields of .spec, each with its type, or {} for none", "required value is missing")
		return
	}
	described, problems := simpleschema.Parse(s.Spec, s.Types)
	for _, p := range problems {
		at := display(append(fieldpath.New("watch", "schema"), p.Path...))
		if v.cutShort(at) {
			v.add(at, "quote the whole text", "YAML reads everything after # as a comment")
			continue
		}
		v.add(at, p.Fix, "%s", p.Text)
	}
	v.described = described
}

// cutShort reports whether YAML took the rest of a text for a comment.
func (v *validator) cutShort(path string) bool { return cutByComment(v.index[path].node) }

// describable reports kinds that no CustomResourceDefinition of one's own can be for.
func (v *validator) describable() {
	gvk := v.Watch.gvk()
	_, isBuiltin := builtin.Scope(gvk.GroupKind())
	const domain = "choose a group with a domain of your own, such as platform.example.com, or remove watch.schema"
	switch {
	case gvk.Kind == "" || v.Watch.APIVersion == "": // reported
	case isBuiltin || gvk.Group == "":
		v.add(schemaKey, "remove it", "%s of %s is a kind of Kubernetes, which has a schema", gvk.Kind, v.Watch.APIVersion)
	case builtin.OwnsGroup(gvk.Group):
		v.add("watch.apiVersion", domain, "the group %s belongs to Kubernetes", gvk.Group)
	case !strings.Contains(gvk.Group, "."):
		v.add(
			"watch.apiVersion",
			domain,
			"the group %s has no dot, and an API server takes no CustomResourceDefinition of such a group",
			gvk.Group,
		)
	}
	if v.Conversion != nil {
		v.add(schemaKey, "keep the CustomResourceDefinition in a file instead",
			"it describes one version, and the kind has a conversion between several")
	}
}

// acknowledged checks that the paths are of fields.
func (v *validator) acknowledged() {
	for i, text := range v.Watch.Acknowledged {
		at := fmt.Sprintf("watch.acknowledged[%d]", i)
		path, ok := v.fieldPath(at, text)
		for _, step := range path {
			if step.Kind != fieldpath.FieldStep && ok {
				v.add(at, "name the list, which includes its items", "%q leads into a list", clip(text))
				break
			}
		}
	}
}

// describedBy reports what two operators say differently of one kind. An operator without watch.schema takes that of another.
func (f *File) describedBy(other *File) Errors {
	a, b := f.Watch.Schema, other.Watch.Schema
	if a == nil || b == nil || f.Watch.Kind == "" {
		return nil
	}
	kind, others := f.Watch.gvk(), other.Watch.gvk()
	differs := func(at, fix, format string, args ...any) Errors {
		return Errors{f.Errorf(at, fix, format+" in %s", append(args, other.where(schemaKey))...)}
	}
	const inFile = "keep the CustomResourceDefinition in a file instead"
	switch {
	case kind.GroupKind() != others.GroupKind() && kind.Group == others.Group && a.Plural == b.Plural:
		return differs(schemaKey+".plural", "choose another", "%s is the resource of %s", a.Plural, others.Kind)
	case kind.GroupKind() != others.GroupKind():
		return nil
	case kind.Version != others.Version:
		return differs(
			schemaKey,
			inFile,
			"%s has version %s, and watch.schema describes one version of a kind: it is described in version %s",
			kind.Kind,
			kind.Version,
			others.Version,
		)
	case a.Scope != b.Scope || a.Plural != b.Plural || !reflect.DeepEqual(a.ShortNames, b.ShortNames) || !reflect.DeepEqual(f.described,
		other.described):
		return differs(
			schemaKey,
			"remove one of them: one is enough for all operators that are loaded together",
			"%s is described differently",
			kind.Kind,
		)
	}
	return nil
}
