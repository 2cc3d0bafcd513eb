package crddiff

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Parts names the parts in which two definitions differ, such as "spec.scope" or "spec.versions[v1].schema". What an
// API server fills in counts as if it had been written, and spec.conversion does not count.
func Parts(a, b *apiextensionsv1.CustomResourceDefinition) []string {
	a, b = a.DeepCopy(), b.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&a.Spec)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&b.Spec)
	var parts []string
	differ := func(part string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			parts = append(parts, part)
		}
	}
	differ("spec.group", a.Spec.Group, b.Spec.Group)
	differ("spec.scope", a.Spec.Scope, b.Spec.Scope)
	differ("spec.names", a.Spec.Names, b.Spec.Names)
	for i := range a.Spec.Versions {
		v, other := &a.Spec.Versions[i], find(b, a.Spec.Versions[i].Name)
		at := fmt.Sprintf("spec.versions[%s]", v.Name)
		if other == nil {
			parts = append(parts, at)
			continue
		}
		differ(at+".schema", v.Schema, other.Schema)
		differ(at+".additionalPrinterColumns", v.AdditionalPrinterColumns, other.AdditionalPrinterColumns)
		differ(at+".subresources", v.Subresources, other.Subresources)
		mine, theirs := *v, *other
		for _, version := range []*apiextensionsv1.CustomResourceDefinitionVersion{&mine, &theirs} {
			version.Schema, version.AdditionalPrinterColumns, version.Subresources = nil, nil, nil
		}
		differ(at, mine, theirs)
	}
	for i := range b.Spec.Versions {
		if name := b.Spec.Versions[i].Name; find(a, name) == nil {
			parts = append(parts, fmt.Sprintf("spec.versions[%s]", name))
		}
	}
	return slices.Compact(parts)
}
