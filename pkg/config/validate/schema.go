package validate

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// SchemaKey is where a config describes the watched kind.
const SchemaKey = "watch.schema"

// checkKindSchema checks the description of the upstream's kind.
func checkKindSchema(v *validator) {
	s := v.Watch.Schema
	if s == nil {
		return
	}
	checkDescribable(v)
	v.form(forms.ResourceName, SchemaKey+".plural", s.Plural, s.Plural)
	names := map[string]bool{s.Plural: true, strings.ToLower(v.Watch.Kind): true}
	for i, name := range s.ShortNames {
		at := fmt.Sprintf("%s.shortNames[%d]", SchemaKey, i)
		if v.form(forms.ResourceName, at, name, name) && names[name] {
			v.Add(at, "remove it", "%q is a name of the resource already", name)
		}
		names[name] = true
	}
	if s.Spec == nil {
		v.Add(SchemaKey+".spec", "write the fields of .spec, each with its type, or {} for none", "required value is missing")
		return
	}
}

// checkDescribable reports kinds that no CustomResourceDefinition of one's own can be for.
func checkDescribable(v *validator) {
	gvk := v.Watch.GVK()
	_, isBuiltin := builtin.Scope(gvk.GroupKind())
	const domain = "choose a group with a domain of your own, such as platform.example.com, or remove watch.schema"
	switch {
	case gvk.Kind == "" || v.Watch.APIVersion == "": // reported
	case isBuiltin || gvk.Group == "":
		v.Add(SchemaKey, "remove it", "%s of %s is a kind of Kubernetes, which has a schema", gvk.Kind, v.Watch.APIVersion)
	case builtin.OwnsGroup(gvk.Group):
		v.Add("watch.apiVersion", domain, "the group %s belongs to Kubernetes", gvk.Group)
	case !strings.Contains(gvk.Group, "."):
		v.Add(
			"watch.apiVersion",
			domain,
			"the group %s has no dot, and an API server takes no CustomResourceDefinition of such a group",
			gvk.Group,
		)
	}
	if v.Conversion != nil {
		v.Add(SchemaKey, "keep the CustomResourceDefinition in a file instead",
			"it describes one version, and the kind has a conversion between several")
	}
}

// checkAcknowledged checks that the paths are of fields.
func checkAcknowledged(v *validator) {
	for i, text := range v.Watch.Acknowledged {
		at := fmt.Sprintf("watch.acknowledged[%d]", i)
		path, ok := checkFieldPath(v, at, text)
		for _, step := range path {
			if step.Kind != fieldpath.FieldStep && ok {
				v.Add(at, "name the list, which includes its items", "%q leads into a list", document.Clip(text))
				break
			}
		}
	}
}
